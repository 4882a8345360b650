package memdev

import (
	"slices"
	"testing"
	"time"

	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

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
	same(t, "strikes of the same seed", replay, half)
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
	if slices.Contains(faultNames[:], "") {
		t.Errorf("a fault has no name: %q", faultNames)
	}
}
