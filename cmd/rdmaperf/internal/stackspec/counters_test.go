package stackspec

import (
	"context"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/devices"
	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/transports"
)

// ofDevicesOnly leaves out what the process itself counts.
func ofDevicesOnly(all []reports.DeviceCounters) (of []reports.DeviceCounters) {
	for _, c := range all {
		if !c.Process {
			of = append(of, c)
		}
	}
	return of
}

// The full name of a stack leads to the device at its bottom.
func TestCountersAreOfTheDeviceBelow(t *testing.T) {
	file := func(s string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(s)} }
	h := devices.Host{Root: fstest.MapFS{
		"sys/class/infiniband/rxe0/ports/1/counters/port_rcv_packets": file("1\n"),
		"sys/class/infiniband/rxe0/ports/2/counters/port_rcv_packets": file("2\n"),
		"proc/net/snmp": file("Tcp: RetransSegs\nTcp: 3\n"),
	}}
	packets := func(port int) reports.DeviceCounters {
		return reports.DeviceCounters{Device: "rxe0", Port: port,
			Counters: map[string]int64{"port_rcv_packets": int64(port)}}
	}
	tcp := []reports.DeviceCounters{{Device: devices.TCPDevice, Counters: map[string]int64{"RetransSegs": 3}}}
	for stack, want := range map[string][]reports.DeviceCounters{
		"verbs:rxe0":       {packets(1), packets(2)},
		"verbs:rxe0/2":     {packets(2)},
		"verbs(cm):rxe0/1": {packets(1)},
		"sched(strict,slice=16KiB)+verbs(cm,port=2):rxe0": {packets(2)},
		"verbs:mlx5_0":               nil,
		"verbs":                      nil,
		"iwarp(crc)":                 tcp,
		"tcp(nodelay)":               tcp,
		"sched(strict)+iwarp(nocrc)": tcp,
		"mem":                        nil,
		"not a stack(":               nil,
	} {
		var got []reports.DeviceCounters
		if read := countersOn(h, stack); read != nil {
			got = ofDevicesOnly(read())
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", stack, diff)
		}
	}
}

// Two stacks of one name in one process count each for itself: a send cut on one is none of the other's.
func TestTiersCountForTheirOwnStack(t *testing.T) {
	const spec = "sched(sends=slice,slice=4K,window=64K)+mem"
	var s Set
	open := func() transports.Stack {
		tr, err := s.Open(spec)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { tr.Close() })
		return tr
	}
	one, other, idle := open(), open(), open()
	if one.Name() != other.Name() {
		t.Fatalf("%s and %s", one.Name(), other.Name())
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	cfg := transports.Config{Window: 1 << 20, SendDepth: 8, RecvDepth: 8}
	ln, err := other.(transports.Transport).Listen(ctx, ":0", cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	far := make(chan transports.Session, 1)
	go func() {
		x, _, err := ln.Accept(ctx)
		if err != nil {
			t.Error(err)
		}
		far <- x
	}()
	near, err := one.(transports.Transport).Dial(ctx, ln.Addr(), nil, cfg)
	if err != nil {
		t.Fatal(err)
	}
	x := <-far
	defer x.Close()
	defer near.Close()
	if _, err := x.Post([]transports.Op{{Kind: transports.KindRecv, Len: 1 << 19}}); err != nil {
		t.Fatal(err)
	}
	if _, err := near.Post([]transports.Op{{Kind: transports.KindSend, Len: 1 << 19}}); err != nil {
		t.Fatal(err)
	}
	var dones [8]transports.Done
	for got := 0; got < 2 && ctx.Err() == nil; {
		for _, e := range []transports.Session{near, x} {
			n, err := e.Poll(dones[:])
			if err != nil {
				t.Fatal(err)
			}
			got += n
		}
	}
	cut := func(tr transports.Stack) int64 {
		for _, c := range Counters(tr)() {
			if c.Device == "sched" {
				return c.Counters["sends_cut"]
			}
		}
		t.Errorf("%s has no counters of its tier", tr.Name())
		return -1
	}
	if cut(one) != 1 || cut(other) != 0 || cut(idle) != 0 {
		t.Errorf("sends cut: %d by the sender, %d by its peer, %d by one that did nothing; want 1, 0, 0", cut(one),
			cut(other), cut(idle))
	}
}
