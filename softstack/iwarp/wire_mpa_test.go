package iwarp

import (
	"encoding/binary"
	"fmt"
	"testing"

	"github.com/rdmaperf/rdmaperf/softstack/mpa"
	"github.com/rdmaperf/rdmaperf/softstack/rdmap"
	"github.com/rdmaperf/rdmaperf/softstack/wiretest"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// TestWireMPA: FPDU framing, W-07 and W-14, W-23 to W-35.
func TestWireMPA(t *testing.T) {
	rows := []row{
		{name: "W-07 bad crc first", script: fault(wiretest.Send(1, []byte("hello")).BadCRC()),
			want: codes(rdmap.TermMPACRC)},
		{name: "W-07 bad crc third", want: codes(rdmap.TermMPACRC), good: []uint64{1, 2},
			script: func(d *dut) *wiretest.Segment {
				d.send(d.message("one"), d.message("two"), d.message("three").BadCRC())
				d.received(0, "one")
				d.received(1, "two")
				return nil
			}},
		{name: "W-07 bad crc write", want: codes(rdmap.TermMPACRC),
			script: func(d *dut) *wiretest.Segment {
				d.send(wiretest.Write(d.target.RKey(), d.target.Addr(), pattern(100)).BadCRC())
				return nil
			}},
		{name: "W-07 bad crc large write", want: codes(rdmap.TermMPACRC),
			// The one deviation: this may be placed before it is checked, but
			// only where the peer may write.
			script: func(d *dut) *wiretest.Segment {
				d.sendInTwo(wiretest.Write(d.target.RKey(), d.target.Addr()+64, pattern(40000)).BadCRC())
				if !d.mode.cfg.StoreAndForward && !d.mode.markers {
					d.loose(targetOff+64, 40000)
				}
				return nil
			}},
		{name: "W-07 bad crc large send", opt: dutOptions{recvs: 1, recvCap: 60000, bare: true},
			want: codes(rdmap.TermMPACRC),
			script: func(d *dut) *wiretest.Segment {
				d.sendInTwo(wiretest.Send(1, pattern(50000)).BadCRC())
				if !d.mode.cfg.StoreAndForward && !d.mode.markers {
					d.loose(recvOff, 50000)
				}
				return nil
			}},
		{name: "W-14 crc off garbage in the field", opt: dutOptions{cfg: func(c *Config) { c.NoCRC = true },
			frame: func(f *mpa.Frame) { f.CRC = false }},
			alive: true, good: []uint64{1},
			script: func(d *dut) *wiretest.Segment {
				d.send(d.message("a").CRC(func([]byte) [4]byte { return [4]byte{0xde, 0xad, 0xbe, 0xef} }))
				d.received(0, "a")
				return nil
			}},
		{name: "W-23 ulpdu length 0", script: fault(wiretest.Raw()), want: codes(rdmap.TermMPAMarker)},
		{name: "W-25 ulpdu of 65535 as a write", alive: true,
			script: func(d *dut) *wiretest.Segment {
				b := pattern(65535 - 14)
				d.send(wiretest.Write(d.target.RKey(), d.target.Addr()+7, b))
				d.placed(targetOff+7, b)
				return nil
			}},
		{name: "W-25 ulpdu of 65535 as a send", opt: dutOptions{recvs: 1, recvCap: 65535, bare: true},
			good: []uint64{1},
			script: func(d *dut) *wiretest.Segment {
				b := pattern(65535 - 18)
				d.send(wiretest.Send(1, b))
				d.placed(recvOff, b)
				must(d.t, d.peer.CloseWrite())
				return nil
			}},
		{name: "W-27 one octet a write", alive: true, good: []uint64{1, 2},
			script: func(d *dut) *wiretest.Segment {
				b := pattern(33)
				must(d.t, d.peer.Dribble(1,
					d.peer.Encode(d.message("drip"), wiretest.Write(d.target.RKey(), d.target.Addr(), b),
						d.message("drop"))))
				d.placed(targetOff, b)
				d.received(0, "drip")
				d.received(1, "drop")
				return nil
			}},
		{name: "W-27 a large write in odd pieces", alive: true,
			script: func(d *dut) *wiretest.Segment {
				b := pattern(30001)
				must(d.t, d.peer.Dribble(1449, d.peer.Encode(wiretest.Write(d.target.RKey(), d.target.Addr()+1, b))))
				d.placed(targetOff+1, b)
				return nil
			}},
		{name: "W-28 fifty fpdus in one write", opt: dutOptions{recvs: 51}, alive: true, good: upTo(50),
			script: func(d *dut) *wiretest.Segment {
				var segs []*wiretest.Segment
				for i := range 50 {
					segs = append(segs, d.message("x"))
					d.received(i, "x")
				}
				d.send(segs...)
				return nil
			}},
		{name: "W-29 pad that is not zero", alive: true, good: []uint64{1},
			script: func(d *dut) *wiretest.Segment {
				d.send(d.message("abcde").Pad(1, 2, 3))
				d.received(0, "abcde")
				return nil
			}},
		{name: "W-30 crc without the pad", want: codes(rdmap.TermMPACRC),
			script: fault(wiretest.Send(1, []byte("hello")).Pad(9, 9, 9).CRC(func(b []byte) (out [4]byte) {
				mpa.PutCRC(out[:], mpa.CRC(0, b[:len(b)-3]))
				return out
			}))},
		{name: "W-30 crc big endian", want: codes(rdmap.TermMPACRC),
			script: fault(wiretest.Send(1, []byte("hello")).CRC(func(b []byte) (out [4]byte) {
				binary.BigEndian.PutUint32(out[:], mpa.CRC(0, b))
				return out
			}))},
		{name: "W-31 wrong fpduptr", modes: marked, want: codes(rdmap.TermMPAMarker),
			script: func(d *dut) *wiretest.Segment {
				d.send(wiretest.Send(1, pattern(60)).More(),
					wiretest.Send(1, pattern(600)).MO(60).Mark(func(p uint16) [4]byte {
						return [4]byte{0, 0, byte(p >> 8), byte(p) + 4}
					}))
				d.loose(recvOff, 60) // the first segment was right
				return nil
			}},
		{name: "W-31 wrong fpduptr of the first marker", modes: marked, want: codes(rdmap.TermMPAMarker),
			script: fault(wiretest.Send(1, nil).Mark(func(uint16) [4]byte { return [4]byte{0, 0, 1, 0} }))},
		{name: "W-32 markers left out", modes: marked, want: codes(rdmap.TermMPAMarker, rdmap.TermMPACRC),
			script: func(d *dut) *wiretest.Segment {
				d.peer.Enc.Markers = false
				d.send(wiretest.Send(1, []byte("hello")))
				return nil
			}},
		{name: "W-33 reserved bits of markers", modes: marked, alive: true, good: []uint64{1},
			script: func(d *dut) *wiretest.Segment {
				b := pattern(2000)
				d.send(d.message("x").Mark(func(p uint16) [4]byte {
					return [4]byte{0xff, 0xff, byte(p >> 8), byte(p) | 3}
				}),
					wiretest.Write(d.target.RKey(), d.target.Addr(), b).Mark(func(p uint16) [4]byte {
						return [4]byte{0x80, 1, byte(p >> 8), byte(p)}
					}))
				d.received(0, "x")
				d.placed(targetOff, b)
				return nil
			}},
		{name: "W-34 marker between pad and crc", modes: marked, alive: true, good: []uint64{1},
			opt: dutOptions{recvCap: 600},
			script: func(d *dut) *wiretest.Segment {
				b := string(pattern(488)) // 4 + 2 + 18 + 488 = 512
				d.send(d.message(b))
				d.received(0, b)
				return nil
			}},
		{name: "W-35 good fpdus after a bad one", want: codes(rdmap.TermMPACRC), good: []uint64{1},
			script: func(d *dut) *wiretest.Segment {
				d.send(d.message("good"), d.message("bad").BadCRC(), d.message("late"),
					wiretest.Write(d.target.RKey(), d.target.Addr(), pattern(64)))
				d.received(0, "good")
				return nil
			}},
	}
	for _, n := range []int{1, 2, 13} {
		rows = append(rows, row{name: fmt.Sprintf("W-24 tagged ulpdu length %d", n),
			want:   codes(rdmap.TermMPAMarker, rdmap.TermDDPLocal, rdmap.TermLocal),
			script: fault(wiretest.Write(1, 0, nil).Shorten(n))})
	}
	for _, n := range []int{2, 13, 14, 17} {
		rows = append(rows, row{name: fmt.Sprintf("W-24 untagged ulpdu length %d", n),
			want:   codes(rdmap.TermMPAMarker, rdmap.TermDDPLocal, rdmap.TermLocal),
			script: fault(wiretest.Send(1, nil).Shorten(n))})
	}
	// V1, V15, V22 and V23 are streams of their own: the device's receives match them.
	for _, v := range wiretest.Vectors() {
		if !v.Markers {
			continue
		}
		rows = append(rows, row{name: "W-34 " + v.Name, modes: marked,
			opt: dutOptions{recvs: 2, recvCap: 600, bare: true}, good: []uint64{1, 2},
			script: func(d *dut) *wiretest.Segment {
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
				return nil
			}})
	}
	runRows(t, rows)
}

// vectorSends are the lengths of the two messages of each stream with markers;
// the second of V1 is added by the test.
var vectorSends = map[string][2]int{"V1": {24, 0}, "V15": {464, 24}, "V22": {480, 24}, "V23": {484, 4}}

func upTo(n int) []uint64 {
	var ids []uint64
	for i := range n {
		ids = append(ids, uint64(i+1))
	}
	return ids
}

// TestWireTruncated: W-26 and DTH-04, an FPDU that never ends.
func TestWireTruncated(t *testing.T) {
	large := pattern(20000)
	for _, c := range []struct {
		name string
		cut  int
		seg  func(d *dut) *wiretest.Segment
	}{
		{"length field", 1, func(*dut) *wiretest.Segment { return wiretest.Send(1, []byte("hello")) }},
		{"header", 9, func(*dut) *wiretest.Segment { return wiretest.Send(1, []byte("hello")) }},
		{"payload", 22, func(*dut) *wiretest.Segment { return wiretest.Send(1, []byte("hello")) }},
		{"crc", 31, func(*dut) *wiretest.Segment { return wiretest.Send(1, []byte("hello")) }},
		{"large payload", 9000, func(d *dut) *wiretest.Segment {
			return wiretest.Write(d.target.RKey(), d.target.Addr(), large)
		}},
		{"crc of a large payload", 2 + 14 + 20000 + 2, func(d *dut) *wiretest.Segment {
			return wiretest.Write(d.target.RKey(), d.target.Addr(), large)
		}},
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
				_, err := d.q.PostRecv([]rdma.RecvWR{{ID: 1, NumSGE: 1, SGE: [4]rdma.SGE{d.recvSGE(0, recvCap)}},
					{ID: 2}})
				must(t, err)
				b := pattern(50)
				s := d.peer.Encode(d.message("abc"), wiretest.Write(d.target.RKey(), d.target.Addr()+uint64(cut), b),
					d.message(""))
				if cut >= len(s) {
					must(t, d.peer.Write(s))
				} else {
					must(t, d.peer.Write(s[:cut]))
					eventually(t, "the first part to be read", func() bool {
						d.q.mu.Lock()
						defer d.q.mu.Unlock()
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
