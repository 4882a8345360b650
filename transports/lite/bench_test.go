package lite

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// BenchmarkLookup is the whole cost of the indirection: from a handle to what it stands
// for, with life, permission and bounds checked, and held against being freed.
func BenchmarkLookup(b *testing.B) {
	for _, regions := range []int{1, 10_000} {
		b.Run(fmt.Sprintf("regions=%d", regions), func(b *testing.B) {
			var t handleTable
			t.init()
			hs := make([]Handle, regions)
			for i := range hs {
				h, err := t.add(&entry{region: uint64(i + 1), size: 4096, perm: PermRead | PermWrite, pieces: []piece{{Node: 0, Off: 0, Len: 4096}}})
				if err != nil {
					b.Fatal(err)
				}
				hs[i] = h
			}
			b.ReportAllocs()
			for i, at := 0, 0; b.Loop(); i++ {
				e, err := t.enter(hs[at], PermWrite, 64, 64)
				if err != nil {
					b.Fatal(err)
				}
				e.leave()
				// A step that is no divisor of the number of regions reaches all of them.
				if at += 7919; at >= regions {
					at %= regions
				}
			}
		})
	}
}

// BenchmarkRead is a read of 64 bytes of one of so many regions of another node, by
// turns: a whole round trip, where the completion of a write may be local.
func BenchmarkRead(b *testing.B) {
	for _, on := range []struct {
		name string
		make func(testing.TB, int, Config) *cluster
	}{{"mem", onMem}, {"iwarp", onIWARP}} {
		for _, regions := range []int{1, 10_000} {
			b.Run(fmt.Sprintf("%s/regions=%d", on.name, regions), func(b *testing.B) {
				c := on.make(b, 2, Config{})
				cl := c.client(1, ClientConfig{Wait: WaitPoll})
				hs := make([]Handle, regions)
				for i := range hs {
					h, err := cl.Malloc(RegionConfig{Name: fmt.Sprint("r", i), Size: 64, Nodes: []int{0}})
					if err != nil {
						b.Fatal(err)
					}
					hs[i] = h
				}
				mem, err := cl.Alloc(64)
				if err != nil {
					b.Fatal(err)
				}
				b.ReportAllocs()
				for at := 0; b.Loop(); {
					if err := cl.Read(hs[at], 0, mem); err != nil {
						b.Fatal(err)
					}
					if at += 7919; at >= regions {
						at %= regions
					}
				}
			})
		}
	}
}

// BenchmarkWaiting is a call whose server thinks for a while, by how the caller waits: its
// time, and what the caller's thread uses of a CPU. Adaptive waiting polls for the first
// 10 µs and then sleeps.
func BenchmarkWaiting(b *testing.B) {
	for _, think := range []time.Duration{0, 5 * time.Microsecond, 20 * time.Microsecond, 50 * time.Microsecond, 200 * time.Microsecond} {
		for wait, name := range []string{WaitAdaptive: "adaptive", WaitPoll: "poll", WaitSleep: "sleep"} {
			b.Run(fmt.Sprintf("think=%v/%s", think, name), func(b *testing.B) {
				c := onIWARP(b, 2, Config{})
				p, err := c.nodes[0].Serve(5, PortConfig{})
				if err != nil {
					b.Fatal(err)
				}
				served := make(chan struct{})
				go func() {
					defer close(served)
					for {
						r, err := p.Recv(time.Second, WaitPoll)
						if err == ErrTimeout {
							continue
						}
						if err != nil {
							return
						}
						for end := time.Now().Add(think); time.Now().Before(end); {
						}
						_ = r.Reply(r.Payload) // the caller sees what is wrong with it
					}
				}()
				cl := c.client(1, ClientConfig{Wait: Waiting(wait)})
				runtime.LockOSThread()
				defer runtime.UnlockOSThread()
				req := make([]byte, 64)
				calls, before := 0, threadCPU(b)
				for b.Loop() {
					if calls++; calls == 2 { // the first one asks for the ring
						before = threadCPU(b)
					}
					if _, err := cl.Call(0, 5, req); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(threadCPU(b)-before)/float64(max(calls-1, 1)), "cpu-ns/op")
				p.Close()
				<-served
			})
		}
	}
}

func threadCPU(b *testing.B) int64 {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t); err != nil {
		b.Fatal(err)
	}
	return t.Nano()
}
