package iwarp

import (
	"bytes"
	"slices"
	"testing"

	"github.com/rdmaperf/rdmaperf/softstack/ddp"
	"github.com/rdmaperf/rdmaperf/softstack/mpa"
	"github.com/rdmaperf/rdmaperf/softstack/rdmap"
	"github.com/rdmaperf/rdmaperf/softstack/wiretest"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// row is one case of the catalogue of bent peers: a stimulus in full operation and what must come of it.
type row struct {
	name  string
	opt   dutOptions
	modes func(m *mode) bool // nil for all; may also change the mode

	// script is the stimulus. It may return the offending segment, whose headers the Terminate must then quote.
	script func(d *dut) *wiretest.Segment

	want   []rdmap.TermCode // allowed reasons; nil: there must be no Terminate
	maybe  bool             // no Terminate is right too
	alive  bool             // the connection must still work afterwards
	good   []uint64         // requests that complete with success
	status map[uint64]rdma.Status
}

// runRows runs beside other tables: much of their time is waiting.
func runRows(t *testing.T, rows []row) {
	t.Parallel()
	for _, r := range rows {
		for _, m := range modes {
			if r.modes != nil && !r.modes(&m) {
				continue
			}
			t.Run(r.name+"/"+m.name, func(t *testing.T) { r.run(t, m) })
		}
	}
}

func (r *row) run(t *testing.T, m mode) {
	opt := r.opt
	opt.bare = opt.bare || r.alive
	d := newDUT(t, m, opt)
	offender := r.script(d)
	good := r.good
	if r.alive {
		text := "still here"
		d.send(d.message(text))
		d.received(len(good), text)
		good = append(good[:len(good):len(good)], uint64(len(good)+1))
		must(t, d.peer.CloseWrite())
	}
	d.checkEnd(r.want, r.maybe, offender, good, r.status)
}

func only(initiator bool) func(*mode) bool {
	return func(m *mode) bool { return m.initiator == initiator }
}

// marked is one mode of each role with markers both ways.
func marked(m *mode) bool {
	m.cfg.Markers, m.markers = true, true
	return !m.cfg.StoreAndForward
}

func codes(c ...rdmap.TermCode) []rdmap.TermCode { return c }

// bent is a stimulus of segments, the last of which is at fault: in one write, but for a large one at the end.
func bent(segs ...*wiretest.Segment) func(*dut) *wiretest.Segment {
	return func(d *dut) *wiretest.Segment {
		last := segs[len(segs)-1]
		if len(last.ULPDU()) > directMin+100 {
			d.sendInTwo(segs...)
		} else {
			d.send(segs...)
		}
		return last
	}
}

// fault is a stimulus whose Terminate quotes nothing.
func fault(segs ...*wiretest.Segment) func(*dut) *wiretest.Segment {
	return does(func(d *dut) { d.send(segs...) })
}

// does is a stimulus with which nothing is wrong, or whose Terminate quotes nothing.
func does(f func(d *dut)) func(*dut) *wiretest.Segment {
	return func(d *dut) *wiretest.Segment {
		f(d)
		return nil
	}
}

func pattern(n int) []byte { return bytes.Repeat([]byte{0xee, 0x77, 0x11}, n/3+1)[:n] }

// checkArena compares the arena with its shadow.
func (d *dut) checkArena() {
	d.t.Helper()
	d.q.mu.Lock() // what was placed was placed under it
	defer d.q.mu.Unlock()
	got := d.arena.Bytes()
	for _, r := range d.slack {
		copy(d.shadow[r[0]:r[1]], got[r[0]:r[1]])
	}
	equal(d.t, "arena", got, d.shadow)
}

// checkEnd follows the end of the stream at all who see it. want are the allowed reasons of the Terminate; none: there
// must be none.
func (d *dut) checkEnd(want []rdmap.TermCode, maybe bool, offender *wiretest.Segment, good []uint64,
	status map[uint64]rdma.Status) {
	d.t.Helper()
	end := d.peer.Finish()
	if end.Kind != wiretest.EndFIN {
		d.t.Errorf("the stream ended by %v, want fin; %v", end.Kind, end.FPDUs)
	}
	d.checkTerminate(&end, want, maybe, offender)
	clean(d.t, d.peer)
	d.peer.Close()
	d.checkDead(good, status)
}

func (d *dut) checkTerminate(end *wiretest.End, want []rdmap.TermCode, maybe bool, offender *wiretest.Segment) {
	d.t.Helper()
	codes := end.Terminates()
	if len(codes) == 0 {
		if len(want) > 0 && !maybe {
			d.t.Errorf("no Terminate, want %v; got %v", want, end.FPDUs)
		}
		return
	}
	if !slices.Contains(want, codes[0]) {
		d.t.Errorf("Terminate %v, want %v", codes, want)
	}
	if offender == nil {
		return
	}
	// RFC 5040 §4.8: the headers of the offending segment and its length.
	term, _ := end.FPDUs[len(end.FPDUs)-1].Terminate()
	ulpdu := offender.ULPDU()
	n := ddp.HeaderLen(ulpdu[0])
	if !term.M || !term.D || int(term.SegLen) != len(ulpdu) || !bytes.Equal(term.DDP, ulpdu[:n]) {
		d.t.Errorf("Terminate quotes %d octets with header %x, want %d and %x", term.SegLen, term.DDP, len(ulpdu),
			ulpdu[:n])
	}
	if read := codes[0].Layer() == 0 && codes[0].EType() == 1 &&
		ulpdu[1]&0xf == byte(rdmap.OpReadReq); read != term.R || read && !bytes.Equal(term.RDMAP, ulpdu[n:]) {
		d.t.Errorf("Terminate quotes the read request %t %x, want %t %x", term.R, term.RDMAP, read, ulpdu[n:])
	}
}

// checkDead wants the QP in ERR, every request completed exactly once, the socket closed, and everybody else well.
func (d *dut) checkDead(good []uint64, status map[uint64]rdma.Status) {
	d.t.Helper()
	eventually(d.t, "qp in ERR", func() bool { return d.q.State() == rdma.QPErr })
	var want []uint64
	for id := uint64(1); id <= uint64(d.recvs); id++ {
		want = append(want, id)
	}
	if !d.bare {
		want = append(want, readID, sendID)
	}
	need(d.q.PostRecv([]rdma.RecvWR{{ID: lateRecvID}}))(d.t)
	need(d.q.PostSend([]rdma.SendWR{{ID: lateSendID, Op: rdma.OpSend}}))(d.t)
	want = append(want, lateRecvID, lateSendID)
	d.checkCompletions(d.completions(len(want)), want, good, status)
	d.checkArena()
	d.q.soon(d.t, "socket closed", func() bool { return d.q.phase == phaseClosed })
	d.checkOthers()
	if left := d.completions(0); len(left) != 0 {
		d.t.Errorf("more completions than requests: %+v", left)
	}
}

func (d *dut) checkCompletions(got []rdma.WC, want, good []uint64, status map[uint64]rdma.Status) {
	d.t.Helper()
	seen := map[uint64]int{}
	var lastSend, lastRecv uint64
	for _, wc := range got {
		seen[wc.ID]++
		last := &lastRecv
		if wc.ID > 100 {
			last = &lastSend
		}
		if wc.ID <= *last {
			d.t.Errorf("completion %d after %d", wc.ID, *last)
		}
		*last = wc.ID
		ok := slices.Contains(good, wc.ID)
		if ok != (wc.Status == rdma.StatusSuccess) {
			d.t.Errorf("request %d: %v, want success %t", wc.ID, wc.Status, ok)
		}
		if s, has := status[wc.ID]; has && wc.Status != s {
			d.t.Errorf("request %d: %v, want %v", wc.ID, wc.Status, s)
		}
	}
	for _, id := range want {
		if seen[id] != 1 {
			d.t.Errorf("request %d completed %d times, want once", id, seen[id])
		}
	}
	if len(got) != len(want) {
		d.t.Errorf("%d completions, want %d: %+v", len(got), len(want), got)
	}
}

// checkOthers wants the bystander connection to work, and the device to take a new one.
func (d *dut) checkOthers() {
	d.t.Helper()
	echoOnce(d.t, d.friend, d.by)
	cq := need(d.dev.NewCQ(8))(d.t)
	defer cq.Close()
	q := need(d.dev.NewQP(rdma.QPConfig{SendCQ: cq, RecvCQ: cq}))(d.t)
	defer q.Close()
	need(q.PostRecv([]rdma.RecvWR{{ID: 9}}))(d.t)
	p := (&end{qp: q}).initiated(d.t, d.l, rdma.ConnParam{}, &mpa.Frame{Rev: 2, CRC: true, Enhanced: true})
	must(d.t, p.Send(wiretest.Send(1, nil)))
	var wc [1]rdma.WC
	eventually(d.t, "a receive on a new connection", func() bool { return need(cq.Poll(wc[:]))(d.t) == 1 })
	if wc[0].ID != 9 || wc[0].Status != rdma.StatusSuccess {
		d.t.Errorf("new connection: %+v", wc[0])
	}
}
