package qos

import (
	"context"
	"math"
	"time"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/drive"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/pairs"
	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// byTurns is measure by the clock of a device, which moves when somebody polls: one thread
// does for both classes what each of them would, so that both have one time.
func byTurns(ctx context.Context, r *engine.Run, window time.Duration, low pairs.Target, h reader,
	clock *rdma.Clock) ([]reports.Result, error) {
	start := clock.Now()
	p := &parts{now: func() time.Duration { return time.Duration(clock.Now() - start) }, window: window}
	t := &turns{Target: low, p: p, high: h, compare: drive.LocalProof(r, 1)}
	w := p.writes(ctx, r, t)
	if _, err := w.Do(ctx, math.MaxInt); err != nil {
		return nil, err
	}
	for idle := 0; p.at() < bins || t.under; idle++ {
		if idle%1024 == 0 && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if err := t.turn(); err != nil {
			return nil, err
		}
	}
	return p.results(r, w), nil
}

// reader is high, where nobody waits.
type reader interface {
	post(record int) error
	came() (bool, error)
	bytes() []byte
}

// turns is low, whose every poll is a turn of high, too.
type turns struct {
	pairs.Target
	p       *parts
	high    reader
	compare *drive.Proof
	n, part int
	began   time.Duration
	under   bool // a read is
}

func (t *turns) Poll(ended func(slot int)) (int, error) {
	if err := t.turn(); err != nil {
		return 0, err
	}
	return t.Target.Poll(ended)
}

// turn looks for the read that is under way, and begins the next one from the second third on.
func (t *turns) turn() error {
	if t.under {
		came, err := t.high.came()
		if err != nil || !came {
			return err
		}
		t.under = false
		if err := t.p.took(t.part, t.p.now()-t.began, t.compare, t.high.bytes(), t.n%records); err != nil {
			return err
		}
		t.n++
	}
	t.part, t.began = t.p.at(), t.p.now()
	if t.part < bins/phases || t.part >= bins {
		return nil
	}
	t.under = true
	return t.high.post(t.n % records)
}
