package iwarp

import (
	"testing"

	"github.com/rdmaperf/rdmaperf/softstack/ddp"
	"github.com/rdmaperf/rdmaperf/softstack/rdmap"
	"github.com/rdmaperf/rdmaperf/softstack/wiretest"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// TestWireOpcodes: versions, opcodes and queues, beyond W-51 to W-54.
func TestWireOpcodes(t *testing.T) {
	op := codes(rdmap.TermOpcode)
	rows := []row{
		{name: "W-51 rv 0", alive: true, good: []uint64{1},
			script: func(d *dut) *wiretest.Segment {
				d.send(d.message("x").RV(0), wiretest.Write(d.target.RKey(), d.target.Addr(), []byte("y")).RV(0))
				d.received(0, "x")
				d.placed(targetOff, []byte("y"))
				return nil
			}},
		{name: "W-53 large send with t", script: bent(wiretest.Tagged(rdmap.OpSend, 0, 0, pattern(9000))), want: op},
		{name: "W-53 terminate with t", script: bent(wiretest.Tagged(rdmap.OpTerminate, 0, 0, make([]byte, 4))),
			want: op, maybe: true},
		{name: "W-53 large write without t", script: bent(wiretest.Untagged(rdmap.OpWrite, 0, 1, pattern(9000))),
			want: op},
		{name: "W-54 terminate on the send queue", script: bent(wiretest.TerminateCode(rdmap.TermLocal).QN(0)),
			want: codes(rdmap.TermOpcode, rdmap.TermUntaggedQN), maybe: true},
	}
	runRows(t, rows)
}

// TestWireReads: requests the device must refuse and responses it must not take, beyond W-55 to W-61.
func TestWireReads(t *testing.T) {
	source := func(of func(d *dut, r *rdmap.ReadRequest)) func(*dut) *wiretest.Segment {
		return func(d *dut) *wiretest.Segment {
			r := rdmap.ReadRequest{SinkSTag: 0x55, SinkTO: 0x5000, Size: 16, SrcSTag: d.target.RKey(),
				SrcTO: d.target.Addr()}
			of(d, &r)
			return bent(wiretest.ReadRequest(1, r))(d)
		}
	}
	answer := func(of func(d *dut) []*wiretest.Segment) func(*dut) *wiretest.Segment {
		return func(d *dut) *wiretest.Segment {
			d.release()
			d.loose(recvOff+sinkOff, sinkLen)
			return bent(of(d)...)(d)
		}
	}
	sink := func(d *dut, stag uint32, delta int64, n int) *wiretest.Segment {
		return wiretest.ReadResponse(d.rx.LKey()^stag, d.rx.Addr()+sinkOff+uint64(delta), pattern(n))
	}
	notAsked := codes(rdmap.TermTaggedSTag, rdmap.TermTaggedBounds)
	length := codes(rdmap.TermUntaggedTooLong, rdmap.TermStream)
	rows := []row{
		{name: "W-55 one octet too far", want: codes(rdmap.TermProtBounds),
			script: source(func(d *dut, r *rdmap.ReadRequest) { r.SrcTO += targetLen - 15 })},
		{name: "W-55 size of 4 GiB", want: codes(rdmap.TermProtBounds),
			script: source(func(d *dut, r *rdmap.ReadRequest) { r.Size = 0xffffffff })},
		{name: "W-57 more requests than ird", want: codes(rdmap.TermUntaggedNoBuffer),
			script: func(d *dut) *wiretest.Segment {
				// One write, read and handled in one go: the device answers none in between.
				var segs []*wiretest.Segment
				for i := range peerDepth + 1 {
					segs = append(segs, wiretest.ReadRequest(uint32(i+1),
						rdmap.ReadRequest{Size: 1000, SrcSTag: d.target.RKey(), SrcTO: d.target.Addr()}))
				}
				return bent(segs...)(d)
			}},
		{name: "W-58 request of 9000 octets", want: length,
			script: bent(wiretest.Untagged(rdmap.OpReadReq, ddp.QNReadReq, 1, make([]byte, 9000)))},
		{name: "W-60 response to nothing", opt: dutOptions{bare: true},
			want: codes(rdmap.TermOpcode, rdmap.TermTaggedSTag),
			script: func(d *dut) *wiretest.Segment {
				return bent(wiretest.ReadResponse(d.target.RKey(), d.target.Addr(), []byte("x")))(d)
			}},
		{name: "W-60 large response to nothing", opt: dutOptions{bare: true},
			want: codes(rdmap.TermOpcode, rdmap.TermTaggedSTag),
			script: func(d *dut) *wiretest.Segment {
				return bent(wiretest.ReadResponse(d.target.RKey(), d.target.Addr(), pattern(9000)))(d)
			}},
		{name: "W-61 the target's stag", want: notAsked, script: answer(func(d *dut) []*wiretest.Segment {
			return []*wiretest.Segment{wiretest.ReadResponse(d.target.RKey(), d.target.Addr(), pattern(sinkLen))}
		})},
		{name: "W-61 shifted down", want: notAsked, script: answer(func(d *dut) []*wiretest.Segment {
			return []*wiretest.Segment{sink(d, 0, -1, sinkLen)}
		})},
		{name: "W-61 much longer", want: notAsked, script: answer(func(d *dut) []*wiretest.Segment {
			return []*wiretest.Segment{sink(d, 0, 0, 9000)}
		})},
		{name: "W-61 empty", want: notAsked, script: answer(func(d *dut) []*wiretest.Segment {
			return []*wiretest.Segment{sink(d, 0, 0, 0)}
		})},
		{name: "W-61 gap", want: notAsked, script: answer(func(d *dut) []*wiretest.Segment {
			return []*wiretest.Segment{sink(d, 0, 0, 4).More(), sink(d, 0, 5, sinkLen-5)}
		})},
		{name: "W-61 second segment too long", want: notAsked, script: answer(func(d *dut) []*wiretest.Segment {
			return []*wiretest.Segment{sink(d, 0, 0, 4).More(), sink(d, 0, 4, sinkLen-3)}
		})},
		{name: "W-61 again", want: codes(rdmap.TermOpcode, rdmap.TermTaggedSTag), good: []uint64{readID, sendID},
			script: func(d *dut) *wiretest.Segment {
				d.release()
				d.send(sink(d, 0, 0, sinkLen))
				d.placed(recvOff+sinkOff, pattern(sinkLen))
				expect(d.t, d.peer, rdmap.OpSend)
				return bent(sink(d, 0, 0, sinkLen))(d)
			}},
	}
	runRows(t, rows)
}

// TestWireTerminates: every reason with which a peer ends the stream, and wrong Terminates beyond W-65.
func TestWireTerminates(t *testing.T) {
	var rows []row
	for layer := range uint8(3) {
		for etype := range uint8(3) {
			for code := range 16 {
				c := rdmap.NewTermCode(layer, etype, uint8(code))
				if !c.Known() || c != rdmap.TermLocal && c.Layer() == 0 && etype == 0 {
					continue
				}
				flush := map[uint64]rdma.Status{1: rdma.StatusWRFlushErr, readID: rdma.StatusWRFlushErr,
					sendID: rdma.StatusWRFlushErr}
				rows = append(rows, row{name: "W-64 " + c.String(), modes: only(layer == 1),
					script: fault(wiretest.TerminateCode(c)), status: flush})
				// siw swaps the nibbles and puts the header bits elsewhere.
				siw := wiretest.Terminate(etype<<4|layer, uint8(code), 0, 0)
				rows = append(rows, row{name: "W-64 siw " + c.String(), modes: only(layer != 1), script: fault(siw),
					status: flush})
			}
		}
	}
	control := []byte{0x20, 0x02, 0, 0}
	rows = append(rows,
		row{name: "W-65 queue", script: fault(wiretest.Terminate(control...).QN(1)), want: codes(rdmap.TermOpcode),
			maybe: true},
		row{name: "W-65 without l", script: fault(wiretest.Terminate(control...).More())},
		row{name: "W-65 r without a header",
			script: fault(wiretest.Terminate(append([]byte{0x01, 0, 0xe0, 0, 0, 46}, make([]byte, 20)...)...))},
		row{name: "W-65 trailing octets", script: fault(wiretest.Terminate(append(control, make([]byte, 5000)...)...))},
	)
	runRows(t, rows)
}

// TestTerminateNamesTheReason: the code reaches the completions and the event.
func TestTerminateNamesTheReason(t *testing.T) {
	for _, c := range []struct {
		code   rdmap.TermCode
		vendor uint32
		event  rdma.EventType
	}{
		{rdmap.TermTaggedSTag, 0x1100, rdma.EventQPAccess},
		{rdmap.TermProtAccess, 0x0102, rdma.EventQPAccess},
		{rdmap.TermOpcode, 0x0206, rdma.EventQPRequest},
		{rdmap.TermMPACRC, 0x2002, rdma.EventQPRequest},
	} {
		d := newDUT(t, modes[1], dutOptions{})
		d.send(wiretest.TerminateCode(c.code))
		for _, wc := range d.completions(d.recvs + 2) {
			if wc.VendorErr != c.vendor {
				t.Errorf("%v: request %d has vendor error %#x, want %#x", c.code, wc.ID, wc.VendorErr, c.vendor)
			}
		}
		if ev, ok := d.dev.Event(); !ok || ev.Type != c.event || ev.Detail != c.vendor || ev.QPNum != d.q.Num() {
			t.Errorf("%v: event %+v %t", c.code, ev, ok)
		}
	}
}

// TestRefusedReadIsBlamed: a Terminate that quotes a read request fails that
// read with the reason, and flushes the rest.
func TestRefusedReadIsBlamed(t *testing.T) {
	for code, want := range map[rdmap.TermCode]rdma.Status{
		rdmap.TermProtAccess: rdma.StatusRemAccessErr,
		rdmap.TermProtSTag:   rdma.StatusRemAccessErr,
		rdmap.TermProtBounds: rdma.StatusRemAccessErr,
	} {
		for _, m := range modes {
			d := newDUT(t, m, dutOptions{})
			d.send(wiretest.Write(1, 0, nil))
			f := need(d.peer.Next())(t)
			term := rdmap.NewTerminate(code, len(f.ULPDU), f.ULPDU, f.Payload())
			d.send(wiretest.Terminate(rdmap.AppendTerminate(nil, &term)...))
			d.checkEnd(nil, false, nil, nil, map[uint64]rdma.Status{readID: want, sendID: rdma.StatusWRFlushErr,
				1: rdma.StatusWRFlushErr})
		}
	}
}
