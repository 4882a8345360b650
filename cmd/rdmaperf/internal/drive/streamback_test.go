package drive

import (
	"bytes"
	"encoding/binary"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/transports"
)

// What reads and atomics bring is compared when they end; whatever is not told of is missed.
func TestWhatComesBackIsCompared(t *testing.T) {
	for _, op := range []string{"read", "fetch_add"} {
		for _, bent := range []bool{false, true} {
			p, s, w, l := streamOn(op, func(sh *engine.Shape) {
				if all(sh); op == "fetch_add" {
					sh.Size = engine.AtomicSize
				}
			})
			l.gen, l.Posted, l.Out = engine.GenMeasure, 3, 3
			for n := range uint64(3) {
				slot := l.Mem[l.Sh.RxSlot(int(n)):][:l.Sh.Size]
				if op == "read" {
					engine.FillPattern(slot, engine.PatternState(1, l.gen, 0, l.Sh.ReadFrom(n)))
				} else {
					binary.NativeEndian.PutUint64(slot, n)
				}
			}
			if bent {
				l.Mem[l.Sh.RxSlot(2)+3] ^= 8
			}
			p.done = []transports.Done{{Kind: l.Kind, Slot: 2}}
			if _, err := w.collect(l); err != nil || l.done != 2 || l.Out != 1 || w.Compared.Messages != 2 {
				t.Errorf("%s: %v, %d compared %+v", op, err, l.done, w.Compared)
			}
			if err := s.Verify(l.gen, nil); reports.Code(err) != reports.ExitCorruption {
				t.Errorf("%s: one is missing: %v", op, err)
			}
			p.done = []transports.Done{{Kind: l.Kind, Slot: 1}}
			if _, err := w.collect(l); (reports.Code(err) == reports.ExitCorruption) != bent || !bent && (err != nil || l.done != 3 || s.Verify(l.gen, nil) != nil) {
				t.Errorf("%s, bent %v: %v, %d compared", op, bent, err, l.done)
			}
		}
	}
}

// Atomics whose values nobody compared as they came left the last of each slot.
func TestTheLastOfEachSlotWasFetched(t *testing.T) {
	for _, posted := range []int64{3, 8, 21} {
		for bent := range int64(9) {
			_, s, _, l := streamOn("fetch_add", func(sh *engine.Shape) { sh.Size, sh.Verify, sh.Row.Numbered = engine.AtomicSize, true, false })
			l.Posted = posted
			for n := range posted {
				binary.NativeEndian.PutUint64(l.Mem[l.Sh.RxSlot(int(n%8)):], uint64(n))
			}
			if bent < 8 {
				l.Mem[l.Sh.RxSlot(int(bent))] ^= 0x40
			}
			if err := s.Verify(1, nil); (reports.Code(err) == reports.ExitCorruption) != (bent < min(posted, 8)) {
				t.Errorf("%d, slot %d changed: %v", posted, bent, err)
			}
		}
	}
}

// A source has its gaps filled, so that what moves too much is seen; who reads has none.
func TestSourcesHaveTheirGaps(t *testing.T) {
	for op, filled := range map[string]bool{"send": true, "write": true, "read": false} {
		p, s, _, l := streamOn(op, nil)
		if err := s.Prepare(1); err != nil || (l.Mem[100] != 0) != filled || bytes.Equal(l.Mem[:100], make([]byte, 100)) == filled {
			t.Errorf("%s: %v, % x behind the first message", op, err, l.Mem[100:110])
		}
		receives := engine.CtlSlots
		if op == "read" {
			receives = 0
		}
		if err := s.Prepare(2); err != nil || len(p.posted) != receives {
			t.Errorf("%s: %v, %d receives for credits, want %d once", op, err, len(p.posted), receives)
		}
	}
}

// A stream that is stopped brings home what it posted; one that broke, or is to end now, does not.
func TestAStoppedStreamComesHome(t *testing.T) {
	for _, c := range []struct {
		name     string
		stop     uint32
		lost     error
		home     bool
		ops, out int64
	}{{"soon", engine.StopSoon, nil, true, 4*8 + 1, 0}, {"now", engine.StopNow, nil, false, 4 * 8, 0}, {"broken", 0, errBroken, false, 3 * 8, 8}} {
		synctest.Test(t, func(t *testing.T) {
			engine.RestartClock()
			p, s, w, l := streamOn("write", nil)
			if err := s.Prepare(engine.GenMeasure); err != nil {
				t.Fatal(err)
			}
			p.complete()
			l.answering(p)
			poll := p.onPoll
			p.onPoll = func(n int) {
				if n == 4 && c.lost != nil {
					p.lost = c.lost
					time.Sleep(100)
					return
				}
				if poll(n); n == 4 {
					w.Stop.Store(c.stop)
				}
			}
			err := s.Loop(w.Worker)()
			if !errors.Is(err, engine.ErrStop) && c.lost == nil || !errors.Is(err, c.lost) && c.lost != nil {
				t.Errorf("%s: %v", c.name, err)
			}
			if l.tail != c.home || l.Fenced != c.home || w.Ops != c.ops || int64(l.Out) != c.out || w.Peak.Slots[0] != c.ops {
				t.Errorf("%s: tail %v, barrier %v, %d operations, %d counted, %d out", c.name, l.tail, l.Fenced, w.Ops, w.Peak.Slots[0], l.Out)
			}
		})
		engine.RestartClock()
	}
}
