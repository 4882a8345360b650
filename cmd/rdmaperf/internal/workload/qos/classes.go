package qos

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/drive"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/pairs"
	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/transports/lite"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// highSender is whose pattern the records of high have: none of low's slots.
const highSender = depth

type low struct{ *pairs.Named }

func openLow(p *pairs.Nodes) (l low, err error) {
	if l.Named, err = pairs.NewNamed(p, lite.ClientConfig{}); err != nil {
		return l, err
	}
	if err := l.Make("low", depth*bulk); err != nil {
		return l, err
	}
	if err := l.Clients(1, depth, bulk, lite.ClientConfig{Depth: depth, Wait: lite.WaitAdaptive}); err != nil {
		return l, err
	}
	return l, l.Map("low")
}

// Poll names the class in an error.
func (l low) Poll(ended func(int)) (int, error) {
	k, err := l.Named.Poll(ended)
	if err != nil {
		if s := (*rdma.StatusError)(nil); errors.As(err, &s) {
			err = fmt.Errorf("low: %w", s)
		}
	}
	return k, err
}

type high struct {
	c    *lite.Client
	h    lite.Handle
	b    []byte // registered, so that nothing is copied on the way
	at   uint64
	ops  [1]lite.Op
	done [1]lite.Done
}

func openHigh(p *pairs.Nodes) (*high, error) {
	home, err := p.Nodes[0].Client(lite.ClientConfig{})
	if err != nil {
		return nil, err
	}
	own, err := home.Malloc(lite.RegionConfig{Name: "high", Size: records * small,
		Open: lite.PermRead | lite.PermWrite})
	if err != nil {
		return nil, err
	}
	all := make([]byte, records*small)
	for i := range records {
		b := all[i*small:][:small]
		drive.FillSender(b, highSender)
		drive.PutNumber(b, uint64(i))
	}
	if err := home.Write(own, 0, all); err != nil {
		return nil, err
	}
	hi := new(high)
	if hi.c, err = p.Nodes[1].Client(lite.ClientConfig{Wait: lite.WaitPoll, Priority: 1}); err != nil {
		return nil, err
	}
	if hi.h, err = hi.c.Map("high", lite.PermRead, ""); err != nil {
		return nil, err
	}
	if hi.b, err = hi.c.Alloc(small); err != nil {
		return nil, err
	}
	hi.at, err = hi.c.Offset(hi.b)
	return hi, err
}

func (h *high) read(record int, dst []byte) error {
	err := h.c.Read(h.h, uint64(record*small), h.b)
	copy(dst, h.b)
	return err
}

// post begins to read a record, and came tells whether it is in bytes.
func (h *high) post(record int) error {
	h.ops[0] = lite.Op{Kind: lite.OpRead, Handle: h.h, Off: uint64(record * small), Local: h.at, Len: small}
	_, err := h.c.Post(h.ops[:])
	return err
}

func (h *high) bytes() []byte { return h.b }

func (h *high) came() (bool, error) {
	k, err := h.c.Poll(h.done[:])
	if err == nil && k > 0 && h.done[0].Status != rdma.StatusSuccess {
		err = fmt.Errorf("high: %w", &rdma.StatusError{WC: rdma.WC{Status: h.done[0].Status}})
	}
	return k > 0, err
}

// byTurns is measure by a device's clock, which polls move: one thread does for both classes what each would.
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
