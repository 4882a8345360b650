package fused

import (
	"bytes"
	"math/rand/v2"
	"runtime"
	"runtime/pprof"
	"testing"
	"time"

	"github.com/rdmaperf/rdmaperf/grpcrdma"
	"github.com/rdmaperf/rdmaperf/grpcrdma/internal/rpctest"
)

func TestBentSessionsLeaveNothing(t *testing.T) {
	const sessions = 1500
	l, dial, kill := overIWARP(t, grpcrdma.Config{Ring: 4 << 10})
	r := serve(t, "rdma", l, dial, kill, Config{}, Config{ConnectionTimeout: 200 * time.Millisecond})
	rpctest.Unary(t, r.Target)
	call := join(goodHello, raw(kindStream, fOpen|fFirst|fData, 1, opening(stuck, 1<<20, make([]byte, 4000))...))
	seed := rand.Uint64()
	rng := rand.New(rand.NewPCG(seed, 0))
	heap := func() uint64 {
		runtime.GC()
		runtime.GC() // what finalizers freed
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	goroutines, bytesBefore := runtime.NumGoroutine(), heap()
	ctx := soon(t) // one for all: contexts are on the heap, too
	for range sessions {
		c, err := dial(ctx)
		must(t, err)
		say := append([]byte(nil), call...)
		for range rng.IntN(4) {
			say[rng.IntN(len(say))] ^= 1 << rng.IntN(8)
		}
		c.SetDeadline(time.Now().Add(time.Second))
		c.Write(say[:rng.IntN(len(say)+1)])
		c.Close()
	}
	for end := time.Now().Add(3 * time.Second); runtime.NumGoroutine() > goroutines; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			var b bytes.Buffer
			pprof.Lookup("goroutine").WriteTo(&b, 1)
			t.Fatalf("%d goroutines, %d before (seed %d)\n%s", runtime.NumGoroutine(), goroutines, seed, b.String())
		}
	}
	now := heap()
	for end := time.Now().Add(3 * time.Second); now > bytesBefore+4<<20 && time.Now().Before(end); now = heap() {
		time.Sleep(20 * time.Millisecond) // timers of the last sessions keep their buffers
	}
	if now > bytesBefore+4<<20 {
		t.Errorf("heap of %d KiB, %d before (seed %d)", now>>10, bytesBefore>>10, seed)
	}
	// Who stops in the middle of a greeting costs a goroutine until the connection timeout.
	const stuckPeers = 15
	for range stuckPeers {
		c, err := dial(ctx)
		must(t, err)
		defer c.Close()
		c.SetDeadline(time.Now().Add(time.Second))
		c.Write(goodHello[:headerLen+rng.IntN(8)])
	}
	rpctest.Unary(t, r.Target)
	begun := time.Now()
	until(t, "the end of stuck peers", func() bool { return len(r.sessions()) == 1 }) // the good client's
	if took := time.Since(begun); took > 3*time.Second {
		t.Errorf("stuck peers are kept for %v", took)
	}
	rpctest.Unary(t, r.Target)
}
