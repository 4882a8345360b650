//go:build lwip && cgo

package lwip

import (
	"bytes"
	"testing"
	"time"

	"github.com/rdmaperf/rdmaperf/transports/stream"
)

// longestStall is how long nothing may arrive: lwIP's retransmission time at first, 3 s (LWIP_TCP_RTO_TIME), a tick of
// 500 ms, and what a busy machine adds.
const longestStall = 3*time.Second + 500*time.Millisecond + 3*time.Second

// TestImpairedLinksLeaveTheStreamExact: F10.
func TestImpairedLinksLeaveTheStreamExact(t *testing.T) {
	for name, cfg := range map[string]Config{
		"reordered":   {Reorder: 0.05, Seed: 7},
		"duplicated":  {Duplicate: 0.05, Seed: 7},
		"one in 1000": {Loss: 0.001, Seed: 7},
		"delayed":     {Delay: 200 * time.Microsecond, Jitter: 100 * time.Microsecond, Seed: 7},
		"all":         {Loss: 0.001, Duplicate: 0.01, Reorder: 0.01, Delay: 50 * time.Microsecond, Seed: 7},
		"packet thread, all": {Threads: C1, Loss: 0.001, Duplicate: 0.01, Reorder: 0.01, Delay: 50 * time.Microsecond,
			Seed: 7},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := openStack(t, cfg)
			a, b := pair(t, s)
			msg := random(2, 2<<20)
			quiet, last := time.Duration(0), time.Now()
			if got := resume(t, a, b, msg, 0, 60*time.Second, func() {
				now := time.Now()
				quiet, last = max(quiet, now.Sub(last)), now
			}); !bytes.Equal(got, msg) {
				t.Fatal("not what was sent")
			}
			n := s.Counts()
			if cfg.Loss > 0 && n.Lost == 0 || cfg.Duplicate > 0 && n.Duplicated == 0 ||
				cfg.Reorder > 0 && n.Reordered == 0 || (cfg.Delay > 0) != (n.Delayed > 0) {
				t.Errorf("the impairment of %+v did nothing: %+v", cfg, n)
			}
			if quiet > longestStall {
				t.Errorf("nothing arrived for %v: a retransmission takes %v", quiet, longestStall)
			}
			t.Logf("seed %d: the longest stall was %v, %d frames lost", cfg.Seed, quiet, n.Lost)
		})
	}
}

// TestADelayedFrameArrivesNoEarlier: there and back take twice the delay.
func TestADelayedFrameArrivesNoEarlier(t *testing.T) {
	const delay = 20 * time.Millisecond
	a, b := pair(t, openStack(t, Config{Delay: delay}))
	buf := make([]byte, 8)
	start := time.Now()
	if _, err := soon(t, func() (int, error) { return a.Send([]byte("there")) }); err != nil {
		t.Fatal(err)
	}
	if n, err := soon(t, func() (int, error) { return b.Recv(buf) }); n != 5 || err != nil {
		t.Fatal(n, err)
	}
	if took := time.Since(start); took < delay || took > delay+2*time.Second {
		t.Errorf("one way took %v, with a delay of %v", took, delay)
	}
	if _, err := soon(t, func() (int, error) { return b.Send([]byte("back")) }); err != nil {
		t.Fatal(err)
	}
	if n, err := soon(t, func() (int, error) { return a.Recv(buf) }); n != 4 || err != nil {
		t.Fatal(n, err)
	}
	if took := time.Since(start); took < 2*delay {
		t.Errorf("there and back took %v, with a delay of %v", took, delay)
	}
}

// TestASleeperIsWokenForADelayedFrame: nobody polls while it waits.
func TestASleeperIsWokenForADelayedFrame(t *testing.T) {
	a, b := pair(t, openStack(t, Config{Delay: 30 * time.Millisecond}))
	must(a.Send([]byte("x")))(t)
	start := time.Now()
	b.Await(stream.Readable, 20000)
	if n, err := b.Recv(make([]byte, 8)); n != 1 || err != nil {
		t.Errorf("after %v: %d, %v", time.Since(start), n, err)
	}
}
