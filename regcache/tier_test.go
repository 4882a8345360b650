package regcache

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/rdmaperf/rdmaperf/internal/expect"
	"github.com/rdmaperf/rdmaperf/softstack/iwarp"
	"github.com/rdmaperf/rdmaperf/transports/conform"
	"github.com/rdmaperf/rdmaperf/transports/conform/conformtest"
	"github.com/rdmaperf/rdmaperf/transports/memdev"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// harness makes pairs of tiers over pairs of devices.
func harness(name, listen string, open func() (a, b rdma.Device, err error)) *conform.Harness {
	return &conform.Harness{Name: name, Open: func(context.Context) (rdma.Device, rdma.Device, string, error) {
		a, b, err := open()
		if err != nil {
			return nil, nil, "", err
		}
		ta, errA := Wrap(a, TierConfig{})
		tb, errB := Wrap(b, TierConfig{})
		return ta, tb, listen, errors.Join(errA, errB)
	}}
}

// What a device promises, the tier over it keeps.
func TestTierConforms(t *testing.T) {
	for _, h := range []*conform.Harness{
		harness("regcache+mem", ":0", func() (a, b rdma.Device, err error) {
			f := memdev.NewFabric(memdev.Config{ReadDelay: 10 * time.Microsecond})
			a, errA := f.Open("a")
			b, errB := f.Open("b")
			return a, b, errors.Join(errA, errB)
		}),
		harness("regcache+iwarp", "127.0.0.1:0", func() (a, b rdma.Device, err error) {
			a, errA := iwarp.Open(iwarp.Config{})
			b, errB := iwarp.Open(iwarp.Config{})
			return a, b, errors.Join(errA, errB)
		}),
	} {
		t.Run(h.Name, func(t *testing.T) {
			t.Parallel() // it mostly waits
			t.Cleanup(func() { expect.OK(t, h.Close()) })
			conformtest.Run(t, h, conform.Options{Strict: true})
		})
	}
}

func newTier(t *testing.T, cfg TierConfig) rdma.Device {
	t.Helper()
	d := expect.Get(Wrap(expect.Get(memdev.NewFabric(memdev.Config{}).Open("a"))(t), cfg))(t)
	t.Cleanup(func() { expect.OK(t, d.Close()) })
	return d
}

func register(t *testing.T, d rdma.Device, pd rdma.PD, b rdma.Buffer, access rdma.Access) (rdma.MR, uint32) {
	t.Helper()
	mr := expect.Get(d.RegMR(pd, b, access))(t)
	if mr.Addr() != b.Addr() || mr.Len() != uint64(b.Len()) || mr.Access() != access {
		t.Errorf("registration of %#x+%d, %v tells %#x+%d, %v", b.Addr(), b.Len(), access, mr.Addr(), mr.Len(),
			mr.Access())
	}
	return mr, mr.LKey()
}

// Local registrations are found again; remote ones only where that was asked for.
func TestTierKeepsWhatItIsToldTo(t *testing.T) {
	for _, c := range []struct {
		keep   bool
		access rdma.Access
		again  bool
	}{
		{false, rdma.LocalWrite, true},
		{false, rdma.LocalWrite | rdma.RemoteWrite, false},
		{true, rdma.LocalWrite | rdma.RemoteWrite, true},
		{true, rdma.LocalWrite | rdma.RemoteInvalidate, false},
	} {
		d := newTier(t, TierConfig{Keep: c.keep})
		b := alloc(t, 8192)
		mr, first := register(t, d, 0, b, c.access)
		mr.Close()
		mr, second := register(t, d, 0, b, c.access)
		if (first == second) != c.again {
			t.Errorf("%+v: keys %#x, then %#x", c, first, second)
		}
		mr.Close()
		if err := mr.Close(); err != nil {
			t.Errorf("second close: %v", err)
		}
		n := rdma.CountsOf(d)[0].Values
		want := map[bool][3]int64{true: {2, 1, 0}, false: {0, 0, 2}}[c.again]
		if got := [3]int64{n["gets"], n["hits_fast"], n["passed"]}; got != want {
			t.Errorf("%+v: gets, hits_fast, passed are %v, want %v", c, got, want)
		}
	}
}

// A domain can be freed although registrations of it are kept, and not while one is used.
func TestTierGivesADomainUp(t *testing.T) {
	d := newTier(t, TierConfig{Keep: true})
	pd := expect.Get(d.AllocPD())(t)
	b := alloc(t, 4096)
	local, _ := register(t, d, pd, b, rdma.LocalWrite)
	remote, _ := register(t, d, pd, b, rdma.LocalWrite|rdma.RemoteRead)
	expect.Is(t, "free of a domain in use", d.FreePD(pd), rdma.ErrBusy)
	local.Close()
	remote.Close()
	if err := d.FreePD(pd); err != nil {
		t.Errorf("free of a domain whose registrations are kept: %v", err)
	}
}

// An idle registration ends when it is older than the bound, at a later call.
func TestTierTrimsByAge(t *testing.T) {
	d := newTier(t, TierConfig{Config: Config{MaxAge: time.Millisecond}})
	young := alloc(t, 4096)
	old, _ := register(t, d, 0, alloc(t, 4096), rdma.LocalWrite)
	old.Close()
	for end := time.Now().Add(10 * time.Second); ; {
		mr, _ := register(t, d, 0, young, rdma.LocalWrite)
		mr.Close()
		if n := rdma.CountsOf(d)[0].Values; n["mem_deregs"] > 0 {
			return
		}
		if time.Now().After(end) {
			t.Fatal("a region outlived its age")
		}
	}
}
