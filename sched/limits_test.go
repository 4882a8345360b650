package sched_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/rdmaperf/rdmaperf/sched"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// Queue pairs are as deep as the tier's limits say, and have as many inline bytes, to the last.
func TestQueuePairsAreAsLargeAsTheLimits(t *testing.T) {
	d := wrapped(t, newNull(), sched.Config{})
	caps := d.Caps()
	cq := need(d.NewCQ(4))(t)
	for name, c := range map[string]struct {
		cfg rdma.QPConfig
		ok  bool
	}{
		"sends":               {rdma.QPConfig{SendDepth: caps.MaxQPWR}, true},
		"one more":            {rdma.QPConfig{SendDepth: caps.MaxQPWR + 1}, false},
		"fewer than none":     {rdma.QPConfig{SendDepth: -1}, false},
		"none":                {rdma.QPConfig{}, true},
		"receives":            {rdma.QPConfig{RecvDepth: caps.MaxQPWR}, true},
		"one receive more":    {rdma.QPConfig{RecvDepth: caps.MaxQPWR + 1}, false},
		"inline bytes":        {rdma.QPConfig{MaxInline: caps.MaxInline, SendDepth: 1}, true},
		"one byte more":       {rdma.QPConfig{MaxInline: caps.MaxInline + 1, SendDepth: 1}, false},
		"less than no inline": {rdma.QPConfig{MaxInline: -1, SendDepth: 1}, false},
	} {
		c.cfg.SendCQ, c.cfg.RecvCQ = cq, cq
		q, err := d.NewQP(c.cfg)
		if (err == nil) != c.ok || !c.ok && !errors.Is(err, rdma.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
		if err == nil {
			must(t, q.Close())
		}
	}
}

// What waits is held to the device's limits, as nobody can refuse it later.
func TestWhatWaitsIsHeldToTheLimits(t *testing.T) {
	dev := newScript(false)
	dev.caps.MaxSGE, dev.caps.MaxReadSGE, dev.caps.MaxMsg = 3, 2, 16*kib
	dev.caps.Features &^= rdma.FeatFence | rdma.FeatImmPayload
	r := newRigOn(t, dev, sched.Config{Slice: kib, Window: 2 * kib}, 32, 4)
	elements := func(op rdma.Opcode, k, n int) rdma.SendWR {
		w := r.wr(9, op, 0, n)
		w.NumSGE = uint8(k)
		for i := 1; i < k; i++ {
			w.SGE[i] = rdma.SGE{Addr: r.mem.Addr()}
		}
		return w
	}
	flagged := func(op rdma.Opcode, f rdma.SendFlags, n int) rdma.SendWR {
		w := r.wr(9, op, 0, n)
		w.Flags |= f
		return w
	}
	r.post(r.wr(1, rdma.OpWrite, 0, 8*kib)) // behind which all waits
	taken := 1
	for name, c := range map[string]struct {
		wr   rdma.SendWR
		want error
	}{
		"elements of a write":           {elements(rdma.OpWrite, 3, 64), nil},
		"one more":                      {elements(rdma.OpWrite, 4, 64), rdma.ErrInvalid},
		"elements of a read":            {elements(rdma.OpRead, 2, 64), nil},
		"one more of a read":            {elements(rdma.OpRead, 3, 64), rdma.ErrInvalid},
		"the longest message":           {r.wr(9, rdma.OpWrite, 0, 16*kib), nil},
		"a byte more":                   {r.wr(9, rdma.OpWrite, 0, 16*kib+1), rdma.ErrInvalid},
		"the first that is no opcode":   {r.wr(9, rdma.Opcode(rdma.NumOpcodes), 0, 8), rdma.ErrInvalid},
		"no fence":                      {r.wr(9, rdma.OpWrite, 0, 8), nil},
		"a fence":                       {flagged(rdma.OpWrite, rdma.Fence, 8), rdma.ErrNotSupported},
		"an immediate alone":            {r.wr(9, rdma.OpSendImm, 0, 0), nil},
		"an immediate behind a payload": {r.wr(9, rdma.OpSendImm, 0, 1), rdma.ErrNotSupported},
		"inline bytes":                  {flagged(rdma.OpWrite, rdma.Inline, 64), nil},
		"one inline byte more":          {flagged(rdma.OpWrite, rdma.Inline, 65), rdma.ErrInvalid},
		"no bytes inline":               {flagged(rdma.OpSend, rdma.Inline, 0), nil},
	} {
		n, err := r.qp.PostSend([]rdma.SendWR{c.wr})
		if err != c.want || n != 0 != (err == nil) {
			t.Errorf("%s: %d, %v, want %v", name, n, err, c.want)
		}
		taken += n
	}
	if got := r.end(); len(got) != taken {
		t.Errorf("%d completions of %d requests", len(got), taken)
	}
}

// split is a request whose bytes are in two elements, of which the first has so many.
func (r *rig) split(id, first, second int) rdma.SendWR {
	w := r.wr(id, rdma.OpWrite, 0, first)
	w.NumSGE, w.SGE[1] = 2, rdma.SGE{Addr: r.mem.Addr() + uint64(first), Len: uint32(second)}
	return w
}

// A request weighs what all of its elements do, and one without elements nothing, whatever is left in its list.
func TestAllElementsWeigh(t *testing.T) {
	r := newRig(t, sched.Config{Slice: 4 * kib, Window: 16 * kib}, 32, 4)
	reach := func(n int, make func(id int) rdma.SendWR, want ...uint32) {
		t.Helper()
		for i := range n {
			r.post(make(1 + i))
		}
		r.reached(want...)
		r.end()
		r.seen = nil
	}
	reach(1, func(id int) rdma.SendWR { return r.split(id, kib, 5*kib) }, 1, 1) // more than a slice
	reach(6, func(id int) rdma.SendWR { return r.split(id, kib, 3*kib) }, 1, 2, 3, 4)
	reach(6, func(id int) rdma.SendWR {
		w := r.wr(id, rdma.OpWrite, 0, 4*kib)
		w.NumSGE = 0
		return w
	}, 1, 2, 3, 4, 5, 6)
}

// What the device did not take fills no window.
func TestRefusedRequestsWeighNothing(t *testing.T) {
	r := newRig(t, sched.Config{Slice: 16 * kib, Window: 64 * kib}, 64, 4)
	r.far.refuses = func(w *rdma.SendWR) bool { return w.ID == 2 }
	wrs := []rdma.SendWR{r.wr(1, rdma.OpWrite, 0, 2*kib), r.wr(2, rdma.OpWrite, 0, 2*kib),
		r.wr(3, rdma.OpWrite, 0, 2*kib), r.wr(4, rdma.OpWrite, 0, 2*kib)}
	r.takes(1, rdma.ErrInvalid, wrs...)
	r.far.refuses = nil
	for i := range 40 {
		r.post(r.wr(5+i, rdma.OpWrite, 0, 2*kib))
	}
	if len(r.seen) != 32 {
		t.Errorf("%d requests of 2 KiB at the device, want 32", len(r.seen))
	}
	r.end()
}

// A post of more than the queue has places for is taken as far as there are.
func TestPostsAreTakenUpToTheDepth(t *testing.T) {
	const depth = 8
	for _, used := range []int{0, 3} {
		r := newRig(t, sched.Config{}, depth, 4)
		r.post(r.unsignaled(rdma.OpWrite, used, 8)...)
		r.takes(depth-used, rdma.ErrQueueFull, r.unsignaled(rdma.OpWrite, depth+1, 8)...)
	}
}

// With fifo a post ends at a class that does not exist, and what is before it goes.
func TestPostOrderEndsAtAClassThatDoesNotExist(t *testing.T) {
	dev := newScript(false)
	r := newRigOver(t, dev, wrapped(t, dev, sched.Config{Policy: sched.FIFO}), 8, 4)
	wrs := []rdma.SendWR{r.wr(1, rdma.OpWrite, 0, 8), r.wr(2, rdma.OpWrite, sched.Priorities-1, 8),
		r.wr(3, rdma.OpWrite, sched.Priorities, 8)}
	r.takes(2, rdma.ErrInvalid, wrs...)
	r.reached(1, 2)
	r.far.refuses, r.far.refusedBy = func(w *rdma.SendWR) bool { return w.ID == 2 }, rdma.ErrQueueFull
	r.takes(1, rdma.ErrQueueFull, wrs...)
}

// A tier counts where it cuts sends, above what the device counts, and nowhere else.
func TestOnlyATierThatCutsCounts(t *testing.T) {
	for _, c := range []struct {
		sends sched.Sends
		want  []string
	}{{sched.CutSends, []string{"sched", "below"}}, {sched.WholeSends, []string{"below"}}} {
		var layers []string
		for _, l := range rdma.CountsOf(wrapped(t, counting{newScript(false)}, sched.Config{Sends: c.sends})) {
			layers = append(layers, l.Layer)
			if len(l.Values) == 0 {
				t.Errorf("%s counts nothing", l.Layer)
			}
		}
		if !slices.Equal(layers, c.want) {
			t.Errorf("sends %s: %v count, want %v", c.sends, layers, c.want)
		}
	}
}

// counting is a device that counts.
type counting struct{ *scriptDevice }

func (counting) Counts() []rdma.Counts {
	return []rdma.Counts{{Layer: "below", Values: map[string]int64{"requests": 7}}}
}

// An unsignalled request that had to wait gives its place back with the next completion.
func TestPlacesOfUnsignalledRequestsComeBack(t *testing.T) {
	const depth = 4
	r := newRig(t, sched.Config{Slice: kib, Window: 2 * kib}, depth, 4)
	for range 5 * depth {
		r.post(append(r.unsignaled(rdma.OpWrite, depth-1, 3*kib), r.wr(9, rdma.OpWrite, 0, 8))...)
		tells(t, r.end(), []uint64{9})
	}
}
