package conform

import (
	"fmt"

	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// LRG: large transfers.
var lrgCases = []Case{
	{ID: "lrg/send", Clause: "IBTA 9.7*; RFC 5041 §4", Needs: needSend,
		Requirement: "A message of several MiB arrives whole.", Run: func(e *Env) {
			c, src, dst := e.sending(e.large())
			c.sends(src, dst)
		}},
	{ID: "lrg/write", Clause: "IBTA 9.7*; RFC 5041 §4", Needs: needSendWrite,
		Requirement: "A write of several MiB arrives whole.", Run: func(e *Env) {
			c, src, dst := e.writing(e.large())
			c.writes(src, dst)
		}},
	{ID: "lrg/read", Clause: "IBTA 9.7*; RFC 5041 §4", Needs: needRead,
		Requirement: "A read of several MiB arrives whole.", Run: func(e *Env) {
			c, src, sink := e.reading(e.large())
			c.reads(src, sink)
		}},
	{ID: "lrg/outstanding", Clause: "IBTA 9.7*", Needs: needSendWrite,
		Requirement: "Many large writes can be outstanding; small ones between them keep their place.",
		Run: func(e *Env) {
			depth := e.deep(16)
			size := min(e.large(), 1<<19)
			c := e.connect(connOpts{depth: depth})
			src := e.region(c.a, "src", size+depth, localOnly)
			dst := e.region(c.b, "dst", depth*size, remoteAll)
			src.fill(1)
			long := func(i int) int {
				if i%4 == 3 {
					return 1
				}
				return size
			}
			c.a.doEach(depth, func(i int) rdma.SendWR { return write(i, dst.at(i*size), src.sge(i, long(i))) })
			c.barrier()
			for i := range depth {
				n := long(i)
				e.equal(fmt.Sprintf("%s: write %d", dst.name, i), dst.data()[i*size:i*size+n], src.data()[i:i+n])
				e.allBytes(fmt.Sprintf("%s: behind write %d", dst.name, i), dst.data()[i*size+n:(i+1)*size], 0)
			}
		}},
	{ID: "lrg/over-max", Clause: "man ibv_query_port (max_msg_sz)", Needs: needWrite,
		Requirement: "A message above the limit is refused, and nothing of it arrives.", Run: func(e *Env) {
			const most = 8 << 20
			total := e.Caps.MaxMsg + 1
			per := total/uint64(e.Caps.MaxSGE) + 1
			if per > 1<<32-1 {
				e.Note("limit %d: a longer message cannot be written down", e.Caps.MaxMsg)
				return
			}
			c := e.connect(connOpts{})
			// Every element names the same memory. Above a few MiB the elements exceed it,
			// and the request is wrong for two reasons.
			src := e.region(c.a, "src", int(min(per, most)), localOnly)
			dst := e.region(c.b, "dst", 4096, remoteAll)
			var g []rdma.SGE
			for left := total; left > 0; {
				n := min(per, left)
				s := src.sge(0, 0)
				s.Len = uint32(n)
				g = append(g, s)
				left -= n
			}
			c.localFault(write(1, dst.at(0), g...), dst, rdma.StatusLocLenErr)
		}},
	{ID: "lrg/max-message", Clause: "IBTA: messages of up to 2^31 bytes; RFC 5041 §4: below 2^32", Profile: Full,
		Needs: needSendWrite, Requirement: "A message of the advertised limit, or of 512 MiB, arrives whole.",
		Run: func(e *Env) {
			n := int(min(e.Caps.MaxMsg, 512<<20))
			c, src, dst := e.writing(n)
			c.writes(src, dst)
		}},
}

func (e *Env) large() int {
	n := e.loops(6<<20, 64<<20) + 13 // not a multiple of anything
	if uint64(n) > e.Caps.MaxMsg {
		n = int(e.Caps.MaxMsg)
	}
	return n
}
