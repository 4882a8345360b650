package iwarp

import (
	"fmt"
	"testing"

	"github.com/rdmaperf/rdmaperf/softstack/rdmap"
	"github.com/rdmaperf/rdmaperf/softstack/wiretest"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// TestWireMPA: FPDU framing, beyond W-07 to W-35: what is placed, and the vectors with markers.
func TestWireMPA(t *testing.T) {
	rows := []row{
		{name: "W-07 bad crc write", want: codes(rdmap.TermMPACRC), script: does(func(d *dut) {
			d.send(wiretest.Write(d.target.RKey(), d.target.Addr(), pattern(100)).BadCRC())
		})},
		{name: "W-07 bad crc large write", want: codes(rdmap.TermMPACRC),
			// The one deviation: this may be placed before it is checked, but only where the peer may write.
			script: does(func(d *dut) {
				d.sendInTwo(wiretest.Write(d.target.RKey(), d.target.Addr()+64, pattern(40000)).BadCRC())
				if !d.mode.cfg.StoreAndForward && !d.mode.markers {
					d.loose(targetOff+64, 40000)
				}
			})},
		{name: "W-07 bad crc large send", opt: dutOptions{recvs: 1, recvCap: 60000, bare: true},
			want: codes(rdmap.TermMPACRC),
			script: does(func(d *dut) {
				d.sendInTwo(wiretest.Send(1, pattern(50000)).BadCRC())
				if !d.mode.cfg.StoreAndForward && !d.mode.markers {
					d.loose(recvOff, 50000)
				}
			})},
		{name: "W-25 ulpdu of 65535 as a write", alive: true, script: does(func(d *dut) {
			b := pattern(65535 - 14)
			d.send(wiretest.Write(d.target.RKey(), d.target.Addr()+7, b))
			d.placed(targetOff+7, b)
		})},
		{name: "W-25 ulpdu of 65535 as a send", opt: dutOptions{recvs: 1, recvCap: 65535, bare: true},
			good: []uint64{1},
			script: does(func(d *dut) {
				b := pattern(65535 - 18)
				d.send(wiretest.Send(1, b))
				d.placed(recvOff, b)
				must(d.t, d.peer.CloseWrite())
			})},
		{name: "W-27 a large write in odd pieces", alive: true, script: does(func(d *dut) {
			b := pattern(30001)
			must(d.t, d.peer.Dribble(1449, d.peer.Encode(wiretest.Write(d.target.RKey(), d.target.Addr()+1, b))))
			d.placed(targetOff+1, b)
		})},
		{name: "W-33 reserved bits of markers", modes: marked, alive: true, good: []uint64{1},
			script: does(func(d *dut) {
				b := pattern(2000)
				d.send(d.message("x").Mark(func(p uint16) [4]byte {
					return [4]byte{0xff, 0xff, byte(p >> 8), byte(p) | 3}
				}),
					wiretest.Write(d.target.RKey(), d.target.Addr(), b).Mark(func(p uint16) [4]byte {
						return [4]byte{0x80, 1, byte(p >> 8), byte(p)}
					}))
				d.received(0, "x")
				d.placed(targetOff, b)
			})},
	}
	// V1, V15, V22 and V23 are streams of their own: the device's receives match them.
	for _, v := range wiretest.Vectors() {
		if !v.Markers {
			continue
		}
		rows = append(rows, row{name: "W-34 " + v.Name, modes: marked,
			opt: dutOptions{recvs: 2, recvCap: 600, bare: true}, good: []uint64{1, 2},
			script: does(func(d *dut) {
				must(d.t, d.peer.Write(v.Bytes))
				for i, n := range vectorSends[v.Name] {
					d.received(i, string(make([]byte, n)))
				}
				if v.Name == "V1" {
					d.peer.Enc = wiretest.Encoder{CRC: true, Markers: true}
					d.peer.Encode(wiretest.Send(1, make([]byte, 24)))
					d.send(wiretest.Send(2, nil))
				}
				must(d.t, d.peer.CloseWrite())
			})})
	}
	runRows(t, rows)
}

// vectorSends are the lengths of the two messages of each stream with markers; the second of V1 is added by the test.
var vectorSends = map[string][2]int{"V1": {24, 0}, "V15": {464, 24}, "V22": {480, 24}, "V23": {484, 4}}

// TestWireTruncated: W-26 and DTH-04, an FPDU that never ends.
func TestWireTruncated(t *testing.T) {
	large := pattern(20000)
	hello := func(*dut) *wiretest.Segment { return wiretest.Send(1, []byte("hello")) }
	long := func(d *dut) *wiretest.Segment { return wiretest.Write(d.target.RKey(), d.target.Addr(), large) }
	for _, c := range []struct {
		name string
		cut  int
		seg  func(d *dut) *wiretest.Segment
	}{
		{"length field", 1, hello}, {"header", 9, hello}, {"payload", 22, hello}, {"crc", 31, hello},
		{"large payload", 9000, long}, {"crc of a large payload", 2 + 14 + 20000 + 2, long},
	} {
		for _, reset := range []bool{false, true} {
			how := "fin"
			if reset {
				how = "rst"
			}
			for _, m := range modes {
				t.Run("W-26 "+c.name+"/"+how+"/"+m.name, func(t *testing.T) {
					d := newDUT(t, m, dutOptions{})
					d.send(c.seg(d).Cut(c.cut))
					if reset {
						must(t, d.peer.Reset())
					} else {
						must(t, d.peer.CloseWrite())
						end := d.peer.Finish()
						if end.Kind != wiretest.EndFIN && end.Kind != wiretest.EndReset {
							t.Errorf("the stream ended by %v", end.Kind)
						}
						d.checkTerminate(&end, codes(rdmap.TermMPATCPLost), true, nil)
						d.peer.Close()
					}
					eventually(t, "qp in ERR", func() bool { return d.q.State() == rdma.QPErr })
					d.loose(targetOff, len(large))
					d.checkDead(nil, nil)
				})
			}
		}
	}
}

// TestWireBoundaries: W-28, every boundary between two reads inside three FPDUs.
func TestWireBoundaries(t *testing.T) {
	for _, m := range modes[:2] {
		t.Run(m.name, func(t *testing.T) {
			d := newDUT(t, m, dutOptions{bare: true, recvs: -1})
			step := func(cut int) bool {
				need(d.q.PostRecv([]rdma.RecvWR{{ID: 1, NumSGE: 1, SGE: [4]rdma.SGE{d.recvSGE(0, recvCap)}},
					{ID: 2}}))(t)
				b := pattern(50)
				s := d.peer.Encode(d.message("abc"), wiretest.Write(d.target.RKey(), d.target.Addr()+uint64(cut), b),
					d.message(""))
				if cut >= len(s) {
					must(t, d.peer.Write(s))
				} else {
					must(t, d.peer.Write(s[:cut]))
					d.q.soon(t, "the first part to be read", func() bool {
						d.q.receive()
						return d.q.rx.re-d.q.rx.rs > 0 || cut == 0 || d.q.rx.sendQ.MSN() >= d.msn-1
					})
					must(t, d.peer.Write(s[cut:]))
				}
				wcs := d.completions(2)
				if len(wcs) != 2 || wcs[0].ID != 1 || wcs[0].ByteLen != 3 || wcs[1].ID != 2 ||
					wcs[0].Status|wcs[1].Status != 0 {
					t.Fatalf("cut at %d: %+v", cut, wcs)
				}
				d.received(0, "abc")
				d.placed(targetOff+cut, b)
				d.checkArena()
				return cut < len(s)
			}
			for cut := 0; step(cut); cut++ {
			}
		})
	}
}

// TestWireUntagged: queues, sequence numbers, offsets and receives, beyond W-38 to W-42.
func TestWireUntagged(t *testing.T) {
	rows := []row{
		{name: "W-39 msn of a read request", script: bent(wiretest.ReadRequest(2, rdmap.ReadRequest{})),
			want: codes(rdmap.TermUntaggedNoBuffer, rdmap.TermUntaggedMSN)},
		{name: "W-41 mo at the top", script: bent(wiretest.Send(1, []byte("a")).MO(0xffffffff)),
			want: codes(rdmap.TermUntaggedMO)},
		{name: "W-42 one segment too long", script: bent(wiretest.Send(1, pattern(recvCap+1))),
			want:   codes(rdmap.TermUntaggedTooLong),
			status: map[uint64]rdma.Status{1: rdma.StatusLocLenErr}},
		{name: "W-42 large segment too long", script: bent(wiretest.Send(1, pattern(9000))),
			want:   codes(rdmap.TermUntaggedTooLong),
			status: map[uint64]rdma.Status{1: rdma.StatusLocLenErr}},
	}
	for _, qn := range []uint32{3, 4, 0xffffffff} {
		none := dutOptions{cfg: plain} // queue 3 is RFC 7306's
		rows = append(rows, row{name: fmt.Sprintf("W-38 read request on queue %d", qn), opt: none,
			script: bent(wiretest.ReadRequest(1, rdmap.ReadRequest{}).QN(qn)), want: codes(rdmap.TermUntaggedQN)})
	}
	runRows(t, rows)
}

// TestWireTagged: keys and bounds of Writes that ask for direct placement, W-44 to W-47, and Writes in several places.
func TestWireTagged(t *testing.T) {
	write := func(of func(d *dut) (stag uint32, to uint64), n int) func(*dut) *wiretest.Segment {
		return func(d *dut) *wiretest.Segment {
			stag, to := of(d)
			return bent(wiretest.Write(stag, to, pattern(n)))(d)
		}
	}
	to := func(delta int64) func(*dut) (uint32, uint64) {
		return func(d *dut) (uint32, uint64) { return d.target.RKey(), d.target.Addr() + uint64(delta) }
	}
	const n = 9000
	rows := []row{
		{name: "W-44 unknown stag", want: codes(rdmap.TermTaggedSTag),
			script: write(func(d *dut) (uint32, uint64) { return d.target.RKey() ^ 1, d.target.Addr() }, n)},
		{name: "W-44 freed stag", want: codes(rdmap.TermTaggedSTag),
			script: write(func(d *dut) (uint32, uint64) { return d.freed, d.target.Addr() }, n)},
		{name: "W-45 before the base", want: codes(rdmap.TermTaggedBounds), script: write(to(-1), n)},
		{name: "W-45 at zero", want: codes(rdmap.TermTaggedBounds),
			script: write(func(d *dut) (uint32, uint64) { return d.target.RKey(), 0 }, n)},
		{name: "W-45 beyond the end", want: codes(rdmap.TermTaggedBounds), script: write(to(targetLen+4096), n)},
		{name: "W-45 one octet too far", want: codes(rdmap.TermTaggedBounds),
			script: write(to(int64(targetLen-n+1)), n)},
		{name: "W-46 another domain", want: codes(rdmap.TermTaggedNotAssoc),
			script: write(func(d *dut) (uint32, uint64) { return d.far.RKey(), d.far.Addr() }, n)},
		{name: "W-47 wraps", want: codes(rdmap.TermTaggedWrap),
			script: write(func(d *dut) (uint32, uint64) { return d.target.RKey(), ^uint64(n - 1) }, n)},
		{name: "W-45 the last octet fits", alive: true, script: does(func(d *dut) {
			d.send(wiretest.Write(d.target.RKey(), d.target.Addr()+uint64(targetLen-n), pattern(n)))
			d.placed(targetOff+targetLen-n, pattern(n))
		})},
		{name: "W-48 nothing to a stag without rights", alive: true, script: func(d *dut) *wiretest.Segment {
			return fault(wiretest.Write(d.quiet.RKey(), 1, nil), wiretest.Write(d.far.RKey(), 1, nil),
				wiretest.Write(d.freed, 1, nil))(d)
		}},
		{name: "W-50 gap, overlap and descent", alive: true, script: does(func(d *dut) {
			for i, off := range []int{100, 300, 250, 0} {
				b := pattern(100 + i)
				s := wiretest.Write(d.target.RKey(), d.target.Addr()+uint64(off), b)
				if i < 3 {
					s.More()
				}
				d.send(s)
				d.placed(targetOff+off, b)
			}
		})},
		{name: "W-50 second segment to another stag", alive: true, script: does(func(d *dut) {
			d.send(wiretest.Write(d.target.RKey(), d.target.Addr(), pattern(10)).More(),
				wiretest.Write(d.inv.RKey(), d.inv.Addr(), pattern(20)))
			d.placed(targetOff, pattern(10))
			d.placed(invOff, pattern(20))
		})},
		{name: "W-46 second segment to another domain", want: codes(rdmap.TermTaggedNotAssoc),
			script: func(d *dut) *wiretest.Segment {
				d.placed(targetOff, pattern(10))
				return bent(wiretest.Write(d.target.RKey(), d.target.Addr(), pattern(10)).More(),
					wiretest.Write(d.far.RKey(), d.far.Addr(), pattern(20)))(d)
			}},
	}
	runRows(t, rows)
}
