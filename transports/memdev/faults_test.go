package memdev

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// promise is a rule as a program: it returns what was wrong, or nil. Each must
// hold on a clean fabric and fail under its fault.
type promise struct {
	fault Fault
	delay time.Duration // Config.ReadDelay
	edit  func(a, b *setup)
	check func(a, b *side, clock *manual) error
}

func expect[T any](what string, got, want T) error {
	if g, w := fmt.Sprint(got), fmt.Sprint(want); g != w {
		return fmt.Errorf("%s = %s, want %s", what, g, w)
	}
	return nil
}

var promises = []promise{
	{fault: FaultDropCompletion, check: func(a, b *side, _ *manual) error {
		a.post(b.at(0, wr(rdma.OpWrite, 1, a.sge(0, 1))))
		return expect("completions", outcomes(a.t, a.sq), good(1))
	}},
	{fault: FaultDuplicateCompletion, check: func(a, b *side, _ *manual) error {
		a.post(b.at(0, wr(rdma.OpWrite, 1, a.sge(0, 1))))
		return expect("completions", outcomes(a.t, a.sq), good(1))
	}},
	{fault: FaultReorderCompletions, check: func(a, b *side, _ *manual) error {
		a.post(b.at(0, wr(rdma.OpWrite, 1)), b.at(0, wr(rdma.OpWrite, 2)))
		return expect("completions", outcomes(a.t, a.sq), good(1, 2))
	}},
	{fault: FaultReorderReceives, check: func(a, b *side, _ *manual) error {
		b.recv(1)
		b.recv(2)
		a.post(wr(rdma.OpSend, 1), wr(rdma.OpSend, 2))
		return expect("receives", outcomes(b.t, b.rq), good(1, 2))
	}},
	{fault: FaultSignalAll, check: func(a, b *side, _ *manual) error {
		w := b.at(0, wr(rdma.OpWrite, 1))
		w.Flags = 0
		a.post(w)
		return expect("completions", outcomes(a.t, a.sq), nil)
	}},
	{fault: FaultFlipByte, check: func(a, b *side, _ *manual) error {
		copy(a.buf.Bytes(), "payload")
		a.post(b.at(0, wr(rdma.OpWrite, 1, a.sge(0, 7))))
		if n := len(b.buf.Bytes()) - bytes.Count(b.buf.Bytes(), []byte{0}); n > 7 {
			return fmt.Errorf("%d bytes changed", n)
		}
		return expect("written", string(b.buf.Bytes()[:7]), "payload")
	}},
	{fault: FaultWrongByteLen, check: func(a, b *side, _ *manual) error {
		b.recv(1, b.sge(0, 64))
		a.post(wr(rdma.OpSend, 1, a.sge(0, 7)))
		return expect("length", drain(b.t, b.rq)[0].ByteLen, 7)
	}},
	{fault: FaultLoseImm, check: func(a, b *side, _ *manual) error {
		b.recv(1)
		a.post(wr(rdma.OpSendImm, 1))
		return expect("flags", drain(b.t, b.rq)[0].Flags, rdma.WithImm)
	}},
	{fault: FaultSkipBoundsCheck, check: func(a, b *side, _ *manual) error {
		a.post(b.at(4090, wr(rdma.OpWrite, 1, a.sge(0, 16))))
		return expect("status", outcomes(a.t, a.sq), all(rdma.StatusRemAccessErr, 1))
	}},
	{fault: FaultSkipAccessCheck, edit: func(_, b *setup) { b.mr = rdma.RemoteRead },
		check: func(a, b *side, _ *manual) error {
			a.post(b.at(0, wr(rdma.OpWrite, 1, a.sge(0, 16))))
			return expect("status", outcomes(a.t, a.sq), all(rdma.StatusRemAccessErr, 1))
		}},
	{fault: FaultPartialWrite, check: func(a, b *side, _ *manual) error {
		fill(a, 1)
		a.post(b.at(4090, wr(rdma.OpWrite, 1, a.sge(0, 16))))
		return expect("bytes placed", 4096-bytes.Count(b.buf.Bytes(), []byte{0}), 0)
	}},
	{fault: FaultAcceptOldKey, check: func(a, b *side, _ *manual) error {
		m, err := b.dev.RegMR(0, b.buf, allAccess)
		ok(a.t, err)
		ok(a.t, m.Close())
		fill(a, 1)
		w := b.at(0, wr(rdma.OpWrite, 1, a.sge(0, 16)))
		w.RKey = m.RKey()
		a.post(w)
		return expect("bytes placed", 4096-bytes.Count(b.buf.Bytes(), []byte{0}), 0)
	}},
	{fault: FaultLoseAdd, check: func(a, b *side, _ *manual) error {
		w := b.at(0, wr(rdma.OpFetchAdd, 1, a.sge(0, 8)))
		w.CompareAdd = 1
		a.post(w, w)
		return expect("counter", binary.NativeEndian.Uint64(b.buf.Bytes()), 2)
	}},
	{fault: FaultNoFlush, check: func(a, b *side, _ *manual) error {
		b.recv(1)
		ok(a.t, b.qp.Close())
		return expect("receives", outcomes(b.t, b.rq), flushed(1))
	}},
	{fault: FaultLateFlush, check: func(a, b *side, _ *manual) error {
		b.recv(1)
		ok(a.t, b.qp.Fail())
		err := expect("receives", outcomes(b.t, b.rq), flushed(1))
		ok(a.t, b.qp.Close())
		if late := outcomes(b.t, b.rq); (err == nil) == (len(late) > 0) {
			a.t.Errorf("flushed after Close: %v, before it: %v", late, err == nil)
		}
		return err
	}},
	{fault: FaultStayUp, check: func(a, b *side, _ *manual) error {
		a.post(b.at(4090, wr(rdma.OpWrite, 1, a.sge(0, 16))))
		return expect("states", []rdma.QPState{a.qp.State(), b.qp.State()}, []rdma.QPState{rdma.QPErr, rdma.QPErr})
	}},
	{fault: FaultLoseEvent, check: func(a, b *side, _ *manual) error {
		ok(a.t, a.sq.Arm(false))
		a.post(b.at(0, wr(rdma.OpWrite, 1)))
		return expect("event", fired(a.t.(*testing.T), a.sq), true)
	}},
	{fault: FaultLoseAsync, check: func(a, b *side, _ *manual) error {
		a.post(b.at(4090, wr(rdma.OpWrite, 1, a.sge(0, 16))))
		return expect("events", b.events(), []rdma.EventType{rdma.EventQPAccess})
	}},
	{fault: FaultIgnoreFence, delay: time.Millisecond, check: func(a, b *side, _ *manual) error {
		w := b.at(8, wr(rdma.OpWrite, 2, a.sge(0, 1)))
		w.Flags |= rdma.Fence
		fill(a, 1)
		a.post(b.at(0, wr(rdma.OpRead, 1, a.sge(0, 1))), w)
		return expect("byte written before the read ended", b.buf.Bytes()[8], 0)
	}},
	{fault: FaultExceedORD, delay: time.Millisecond, edit: func(a, _ *setup) { a.param.ORD = 1 },
		check: func(a, b *side, clock *manual) error {
			a.post(b.at(0, wr(rdma.OpRead, 1, a.sge(0, 1))), b.at(0, wr(rdma.OpRead, 2, a.sge(0, 1))))
			for range 3 {
				drain(a.t, a.rq)
				clock.advance(time.Millisecond)
			}
			return expect("statuses", outcomes(a.t, a.sq), good(1, 2))
		}},
	{fault: FaultDie, check: func(a, b *side, _ *manual) error {
		a.post(b.at(0, wr(rdma.OpWrite, 1)), b.at(0, wr(rdma.OpWrite, 2)))
		return expect("statuses", outcomes(a.t, a.sq), good(1, 2))
	}},
}

func TestEveryFaultBreaksItsPromise(t *testing.T) {
	covered := map[Fault]bool{}
	for _, p := range promises {
		covered[p.fault] = true
		t.Run(p.fault.String(), func(t *testing.T) {
			for _, armed := range []bool{false, true} {
				clock := newManual()
				edit := p.edit
				if edit == nil {
					edit = func(a, b *setup) {}
				}
				a, b, f := newPair(t, Config{ReadDelay: p.delay, Now: clock.Now}, edit)
				if armed {
					f.Arm(p.fault, Trigger{})
				}
				err := p.check(a, b, clock)
				if struck := f.Struck(p.fault) > 0; (err != nil) != armed || struck != armed {
					t.Errorf("armed %v: struck %v, broken: %v", armed, struck, err)
				}
				f.Disarm(p.fault)
			}
		})
	}
	for f := range Fault(NumFaults) {
		if !covered[f] {
			t.Errorf("no promise for %v", f)
		}
	}
}

func TestDeathIsFatalForAllQPsOfTheDevice(t *testing.T) {
	a, b, f := newPair(t, Config{})
	f.Arm(FaultDie, Trigger{After: 1})
	w := b.at(0, wr(rdma.OpWrite, 1))
	a.post(w)
	same(t, "first", outcomes(t, a.sq), good(1))
	a.post(w, w)
	same(t, "then", outcomes(t, a.sq), []outcome{{1, rdma.StatusFatalErr}, {1, rdma.StatusWRFlushErr}})
	same(t, "events", a.events(), []rdma.EventType{rdma.EventQPFatal})
}

// A write that leaves its registration must not touch what is not a Buffer.
func TestSkippedBoundsStayInsideBuffers(t *testing.T) {
	a, b, f := newPair(t, Config{}, func(_, b *setup) { b.size = 100 })
	canary := must(rdma.Alloc(64))(t)
	defer canary.Free()
	f.Arm(FaultSkipBoundsCheck, Trigger{})
	fill(a, 'w')
	tests := []struct {
		name string
		addr uint64
		n    int
		at   []byte
		want string
	}{
		{"another buffer", canary.Addr() + 4, 8, canary.Bytes()[:16], "\x00\x00\x00\x00wwwwwwww\x00\x00\x00\x00"},
		{"across the end: the inner part", b.mr.Addr() + 96, 16, b.buf.Bytes()[92:100], "\x00\x00\x00\x00wwww"},
		{"the end of the address space: nothing", ^uint64(0) - 3, 8, b.buf.Bytes()[:8],
			"\x00\x00\x00\x00\x00\x00\x00\x00"},
	}
	for _, tc := range tests {
		w := b.at(0, wr(rdma.OpWrite, 1, a.sge(0, tc.n)))
		w.RemoteAddr = tc.addr
		a.post(w)
		same(t, tc.name+": status", outcomes(t, a.sq), good(1))
		same(t, tc.name, string(tc.at), tc.want)
	}
	r := b.at(97, wr(rdma.OpRead, 1, a.sge(0, 8)))
	add := b.at(0, wr(rdma.OpFetchAdd, 2, a.sge(0, 8)))
	add.RemoteAddr = 8
	a.post(r, add)
	same(t, "read and atomic", outcomes(t, a.sq), good(1, 2))
}

func TestTriggers(t *testing.T) {
	f := NewFabric(Config{Seed: 42})
	d := must(f.Open("d"))(t)
	other := must(f.Open("other"))(t)
	strikes := func(trig Trigger, n int) (out []int) {
		f.Arm(FaultDie, trig)
		for i := range n {
			f.faults.hit(FaultDie, other)
			if f.faults.hit(FaultDie, d) {
				out = append(out, i)
			}
		}
		return out
	}
	same(t, "always", strikes(Trigger{Device: "d"}, 3), []int{0, 1, 2})
	same(t, "the third, once", strikes(Trigger{After: 2, Times: 1, Device: "d"}, 9), []int{2})
	same(t, "from the third on", strikes(Trigger{After: 2, Device: "d"}, 5), []int{2, 3, 4})
	same(t, "another device", strikes(Trigger{Device: "x"}, 5), nil)
	half := strikes(Trigger{Prob: 0.5, Device: "d"}, 100)
	if len(half) < 25 || len(half) > 75 {
		t.Errorf("chance 0.5 struck %d of 100 times", len(half))
	}
	again := NewFabric(Config{Seed: 42, Faults: map[Fault]Trigger{FaultDie: {Prob: 0.5}}})
	var replay []int
	for i := range 100 {
		if again.faults.hit(FaultDie, d) {
			replay = append(replay, i)
		}
	}
	if !slices.Equal(half, replay) {
		t.Error("the same seed gave other strikes")
	}
	f.Disarm(FaultDie)
	if f.faults.hit(FaultDie, d) {
		t.Error("a disarmed fault struck")
	}
}

func TestTheSeedAndTheFaultsAreNamed(t *testing.T) {
	cfg := Config{Seed: 7, Faults: map[Fault]Trigger{
		FaultFlipByte:       {After: 3, Prob: 0.5, Times: 2, Device: "b"},
		FaultDropCompletion: {},
	}}
	f := NewFabric(cfg)
	const want = "mem(seed=7,drop_completion,flip_byte[after=3 prob=0.5 times=2 device=b])"
	same(t, "fabric", f.String(), want)
	same(t, "device", must(f.Open(""))(t).Name(), want)
	same(t, "clean device", must(NewFabric(Config{Seed: 7}).Open(""))(t).Name(), "mem")
	same(t, "slow device", must(NewFabric(Config{ReadDelay: time.Second}).Open(""))(t).Name(), "mem(read_delay=1s)")
	slow := Config{Seed: 7, ReadDelay: time.Second, Faults: map[Fault]Trigger{FaultDie: {}}}
	same(t, "slow and mortal device", must(NewFabric(slow).Open(""))(t).Name(), "mem(read_delay=1s,seed=7,die)")
	for i := range Fault(NumFaults) {
		if got, found := ParseFault(i.String()); !found || got != i || strings.Contains(i.String(), "?") {
			t.Errorf("ParseFault(%q) = %v, %v", i.String(), got, found)
		}
	}
	if _, found := ParseFault("nonsense"); found {
		t.Error("nonsense is a fault")
	}
}
