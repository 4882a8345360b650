package regcache_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/rdmaperf/rdmaperf/regcache"
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
		ta, errA := regcache.Wrap(a, regcache.TierConfig{})
		tb, errB := regcache.Wrap(b, regcache.TierConfig{})
		return ta, tb, listen, errors.Join(errA, errB)
	}}
}

func conforms(t *testing.T, h *conform.Harness) {
	t.Helper()
	t.Cleanup(func() {
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	})
	conformtest.Run(t, h, conform.Options{Strict: true})
}

// What a device promises, the tier over it keeps.
func TestConformsOverMem(t *testing.T) {
	t.Parallel() // it mostly waits
	conforms(t, harness("regcache+mem", ":0", func() (a, b rdma.Device, err error) {
		f := memdev.NewFabric(memdev.Config{ReadDelay: 10 * time.Microsecond})
		a, errA := f.Open("a")
		b, errB := f.Open("b")
		return a, b, errors.Join(errA, errB)
	}))
}

func TestConformsOverIWARP(t *testing.T) {
	t.Parallel() // it mostly waits
	if testing.Short() {
		t.Skip("short: the suite over iwarp takes some seconds")
	}
	conforms(t, harness("regcache+iwarp", "127.0.0.1:0", func() (a, b rdma.Device, err error) {
		a, errA := iwarp.Open(iwarp.Config{})
		b, errB := iwarp.Open(iwarp.Config{})
		return a, b, errors.Join(errA, errB)
	}))
}

func tier(t *testing.T, cfg regcache.TierConfig) rdma.Device {
	t.Helper()
	a, err := memdev.NewFabric(memdev.Config{}).Open("a")
	if err != nil {
		t.Fatal(err)
	}
	d, err := regcache.Wrap(a, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d
}

func register(t *testing.T, d rdma.Device, pd rdma.PD, b rdma.Buffer, access rdma.Access) (rdma.MR, uint32) {
	t.Helper()
	mr, err := d.RegMR(pd, b, access)
	if err != nil {
		t.Fatal(err)
	}
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
		d := tier(t, regcache.TierConfig{Keep: c.keep})
		b, err := rdma.Alloc(8192)
		if err != nil {
			t.Fatal(err)
		}
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
		n := regcache.Tally(d)
		want := map[bool][3]int64{true: {2, 1, 0}, false: {0, 0, 2}}[c.again]
		if got := [3]int64{n["gets"], n["hits_fast"], n["passed"]}; got != want {
			t.Errorf("%+v: gets, hits_fast, passed are %v, want %v", c, got, want)
		}
		b.Free()
	}
}

// A domain can be freed although registrations of it are kept, and not while one is used.
func TestTierGivesADomainUp(t *testing.T) {
	d := tier(t, regcache.TierConfig{Keep: true})
	pd, err := d.AllocPD()
	if err != nil {
		t.Fatal(err)
	}
	b, err := rdma.Alloc(4096)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Free()
	local, _ := register(t, d, pd, b, rdma.LocalWrite)
	remote, _ := register(t, d, pd, b, rdma.LocalWrite|rdma.RemoteRead)
	if err := d.FreePD(pd); !errors.Is(err, rdma.ErrBusy) {
		t.Errorf("free of a domain in use: %v", err)
	}
	local.Close()
	remote.Close()
	if err := d.FreePD(pd); err != nil {
		t.Errorf("free of a domain whose registrations are kept: %v", err)
	}
}

// An idle registration ends when it is older than the bound, at a later call.
func TestTierTrimsByAge(t *testing.T) {
	d := tier(t, regcache.TierConfig{Config: regcache.Config{MaxAge: time.Millisecond}})
	var bufs [2]rdma.Buffer
	for i := range bufs {
		b, err := rdma.Alloc(4096)
		if err != nil {
			t.Fatal(err)
		}
		defer b.Free()
		bufs[i] = b
	}
	old, _ := register(t, d, 0, bufs[0], rdma.LocalWrite)
	old.Close()
	for end := time.Now().Add(10 * time.Second); ; {
		mr, _ := register(t, d, 0, bufs[1], rdma.LocalWrite)
		mr.Close()
		if n := regcache.Tally(d); n["mem_deregs"] > 0 {
			return
		}
		if time.Now().After(end) {
			t.Fatal("a region outlived its age")
		}
	}
}
