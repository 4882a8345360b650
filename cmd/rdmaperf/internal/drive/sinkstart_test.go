package drive

import (
	"errors"
	"testing"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
)

// Before the first phase each session of a target gets its receives, once; one that does not take
// them ends it.
func TestATargetHasItsReceivesBeforeTheFirstPhase(t *testing.T) {
	first, s, w, _ := sinkOn("send", nil)
	second, _, _, other := sinkOn("send", nil)
	w.lanes = append(w.lanes, other)
	for phase := range 2 {
		if err := s.Prepare(phase + 1); err != nil || len(first.posted) != 16 || len(second.posted) != 16 {
			t.Errorf("phase %d: %v, %d and %d receives, want 16 once", phase, err, len(first.posted), len(second.posted))
		}
	}
	s.begun, first.room, first.refuse = false, 5, errBroken
	if err := s.Prepare(1); !errors.Is(err, errBroken) || len(second.posted) != 16 {
		t.Errorf("refused: %v, %d receives of the second", err, len(second.posted))
	}
}

// The client is told of receives when so many more were taken than it heard of, and at a barrier;
// not while its last messages are under way, which have their buffers.
func TestWhenAClientIsToldOfReceives(t *testing.T) {
	for _, c := range []struct {
		name            string
		seen, announced uint64
		owed            bool
		free            int
		told            bool
	}{
		{"as many as it waits for", 20, 12, false, engine.CtlSlots, true}, {"one less", 20, 13, false, engine.CtlSlots, false},
		{"at a barrier", 20, 19, true, engine.CtlSlots, true}, {"without a buffer", 20, 0, true, 0, false}, {"with the last", 20, 0, true, 1, true},
	} {
		p, _, w, l := sinkOn("send", nil)
		l.seen, l.announced, l.owed, l.ctlFree = c.seen, c.announced, c.owed, c.free
		if err := w.refill(l); err != nil || (len(p.posted) == 1) != c.told || (l.announced == l.seen) != c.told {
			t.Errorf("%s: %v, posted %+v, told of %d", c.name, err, p.posted, l.announced)
		}
		if c.told && (l.owed || l.ctlFree != c.free-1) {
			t.Errorf("%s: due again %v, %d buffers", c.name, l.owed, l.ctlFree)
		}
	}
}
