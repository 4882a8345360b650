package drive

import (
	"encoding/binary"
	"errors"
	"testing"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/transports"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// sinkOn is the target of a stream, whose shape a test may change before.
func sinkOn(op string, change func(sh *engine.Shape)) (*puppet, *sink, *sinkWorker, *sinkLane) {
	sh := &engine.Shape{Row: &engine.Workload{Numbered: true, Stream: true, Layout: (*engine.Shape).StreamLayout, Describe: func(engine.Point) string { return op }},
		Point: engine.Point{Op: op, Size: 100}, Depth: 8, RecvDepth: 16, Moderation: 1, Slots: 8, Polling: engine.PollingBusy, Verify: true, Seed: 1}
	if change != nil {
		change(sh)
	}
	p, base, l := pulled(sh, engine.SideServer)
	side, _ := NewSink(&engine.Group{Sh: sh, Role: engine.SideServer, Lanes: []*engine.Lane{l}, Workers: []*engine.Worker{base}})
	s := side.(*sink)
	s.workers[0].lanes[0].gen = engine.GenMeasure
	return p, s, s.workers[0], s.workers[0].lanes[0]
}

// arrived is message n as it should be.
func (l *sinkLane) holds(n uint64) {
	sh := l.Sh
	l.Write(l.Mem[sh.RxSlot(int(n%uint64(sh.Slots))):][:sh.Size], l.gen, n, sh.Whole(l.gen, n) || l.Kind == transports.KindWrite && sh.LooksAt(n/uint64(sh.Slots)))
}

// Messages are known by their length and immediate, and counted; what is another is found.
func TestATargetTakesWhatItKnows(t *testing.T) {
	recv := func(size uint32) transports.Done { return transports.Done{Kind: transports.KindRecv, Len: size} }
	imm := func(size, n uint32) transports.Done {
		return transports.Done{Kind: transports.KindRecv, Len: size, Imm: n, HasImm: true}
	}
	bare := func(sh *engine.Shape) { sh.ImmAlone, sh.Size = true, 1 }
	for _, c := range []struct {
		name, op   string
		change     func(*engine.Shape)
		d          transports.Done
		code       int
		data, imms int64
		owed       bool
		bytes      int64 // compared
	}{
		{"a message", "send", nil, recv(100), 0, 1, 0, false, 100},
		{"of another length", "send", nil, recv(99), reports.ExitCorruption, 0, 0, false, 0},
		{"with an immediate", "send", nil, imm(100, 0), reports.ExitCorruption, 0, 0, false, 0},
		{"a barrier", "send", nil, recv(0), 0, 0, 0, true, 0},
		{"a write with its number", "write_imm", nil, imm(100, 0), 0, 1, 1, false, 100},
		{"a write with another", "write_imm", nil, imm(100, 1), reports.ExitCorruption, 0, 0, false, 0},
		{"a write with none", "write_imm", nil, recv(100), reports.ExitCorruption, 0, 0, false, 0},
		{"a barrier behind writes", "write_imm", nil, recv(0), 0, 0, 0, true, 0},
		{"a write whose length nobody tells", "write_imm", nil, imm(0, 0), 0, 1, 1, false, 100},
		{"a message with its number", "send_imm", nil, imm(100, 0), 0, 1, 1, false, 100},
		{"a short one with its number", "send_imm", nil, imm(99, 0), reports.ExitCorruption, 0, 0, false, 0},
		{"a number alone", "send_imm", bare, imm(0, 0), 0, 0, 1, false, 4},
		{"a number with bytes", "send_imm", bare, imm(1, 0), reports.ExitCorruption, 0, 0, false, 0},
		{"a barrier behind plain writes", "write", nil, recv(0), 0, 0, 0, true, 0},
		{"what failed", "send", nil, transports.Done{Kind: transports.KindRecv, Len: 100, Status: rdma.StatusSuccess + 1}, reports.ExitPeer, 0, 0, false, 0},
	} {
		p, _, w, l := sinkOn(c.op, c.change)
		if !l.Sh.ImmAlone {
			l.holds(0)
		}
		p.done, p.room = []transports.Done{c.d}, 0 // a credit that is due stays so
		err := w.turn(l)
		if reports.Code(err) != c.code && !(c.code == reports.ExitPeer && err != nil) || l.data != c.data || l.immediates != c.imms || l.owed != c.owed || w.Compared.Bytes != c.bytes {
			t.Errorf("%s: %v, %d data, %d immediates, owed %v, compared %+v", c.name, err, l.data, l.immediates, l.owed, w.Compared)
		}
		if taken := uint64(1); err == nil && (l.seen != taken || l.unposted != 1 || w.Ops != 1) {
			t.Errorf("%s: %d seen, %d to be posted, %d operations", c.name, l.seen, l.unposted, w.Ops)
		}
	}
}

// One that asks for a look names the first write of a pass, in the buffer of its receive; the pass
// is compared, and answered.
func TestATargetLooksAtPasses(t *testing.T) {
	for _, bent := range []bool{false, true} {
		p, _, w, l := sinkOn("write", func(sh *engine.Shape) { sh.Slots = 24 })
		for n := uint64(48); n < 72; n++ {
			l.holds(n)
		}
		binary.LittleEndian.PutUint64(l.Mem[l.Sh.CtlRx(20-engine.CtlSlots):], 48)
		if bent {
			l.Mem[l.Sh.RxSlot(23)] ^= 1
		}
		p.done = []transports.Done{{Kind: transports.KindRecv, Len: engine.CheckSize, Slot: 20}}
		if err := w.turn(l); bent != (reports.Code(err) == reports.ExitCorruption) || !bent && (err != nil || l.data != 72 || w.Compared.Numbers != 24 || l.announced != 1) {
			t.Errorf("bent %v: %v, looked up to %d, %d compared, told of %d", bent, err, l.data, w.Compared.Numbers, l.announced)
		}
	}
}

// Room is told by how many messages were seen, when half of the receives were taken or a barrier
// came, as long as there is a buffer for that.
func TestATargetTellsOfRoom(t *testing.T) {
	p, _, w, l := sinkOn("send", func(sh *engine.Shape) { sh.Verify = false })
	take := func(n int, size uint32) error {
		p.posted, p.done = nil, nil
		for range n {
			p.done = append(p.done, transports.Done{Kind: transports.KindRecv, Len: size})
		}
		return w.turn(l)
	}
	if err := take(7, 100); err != nil || len(p.posted) != 0 || l.unposted != 7 {
		t.Errorf("%v, after 7 messages posted %+v", err, p.posted)
	}
	for i := range engine.CtlSlots {
		seen := uint64(8 + i)
		if err := take(1, 100*uint32(1-min(i, 1))); err != nil || l.announced != seen || l.owed || l.ctlFree != engine.CtlSlots-1-i {
			t.Fatalf("%v, told of %d, %d buffers left, want %d", err, l.announced, l.ctlFree, seen)
		}
		said := p.posted[len(p.posted)-1]
		if said.Kind != transports.KindSend || said.Len != 8 || said.Local != uint64(l.Sh.CtlTx(i)) || binary.LittleEndian.Uint64(l.Mem[said.Local:]) != seen {
			t.Errorf("credit %d: %+v", i, said)
		}
	}
	if err := take(1, 0); err != nil || !l.owed || len(p.posted) != 1 {
		t.Errorf("without a buffer: %v, owed %v, posted %+v", err, l.owed, p.posted)
	}
	p.done, p.room = []transports.Done{{Kind: transports.KindSend}}, 0
	if err := w.turn(l); err != nil || !l.owed || l.ctlFree != 1 {
		t.Errorf("without room: %v, owed %v, %d buffers", err, l.owed, l.ctlFree)
	}
	p.refuse = errBroken
	if err := w.turn(l); !errors.Is(err, errBroken) {
		t.Errorf("%v, want %v", err, errBroken)
	}
}
