package sched_test

import (
	"errors"
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

// What waits is held to the device's limits, to the last element and byte, and to what the
// device has: nobody is there to refuse it later.
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
