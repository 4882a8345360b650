package tcp

import (
	"context"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/rdmaperf/rdmaperf/transports"
)

// benchPair connects two sessions over loopback.
func benchPair(b *testing.B, cfg transports.Config) (near, far transports.Session) {
	b.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	t := New(Config{})
	l, err := t.Listen(ctx, "127.0.0.1:0", cfg)
	if err != nil {
		b.Fatal(err)
	}
	defer l.Close()
	got := make(chan transports.Session, 1)
	go func() {
		s, _, err := l.Accept(ctx)
		if err != nil {
			b.Error(err)
		}
		got <- s
	}()
	near, err = t.Dial(ctx, l.Addr(), nil, cfg)
	if err != nil {
		b.Fatal(err)
	}
	return near, <-got
}

// await polls until a Done of the wanted kind and forgets the others.
func await(s transports.Session, dst []transports.Done, k transports.Kind) error {
	for {
		n, err := s.Poll(dst)
		if err != nil {
			return err
		}
		for i := range dst[:n] {
			if dst[i].Status != 0 {
				return fmt.Errorf("%v: %v", dst[i].Kind, dst[i].Status)
			}
			if dst[i].Kind == k {
				return nil
			}
		}
	}
}

// pingPong is one side of n round trips of size bytes.
func pingPong(s transports.Session, first bool, n, size int) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	dst := make([]transports.Done, 16)
	recv := []transports.Op{{Kind: transports.KindRecv, Len: uint32(size)}}
	turn := []transports.Op{recv[0], {Kind: transports.KindSend, Local: uint64(size), Len: uint32(size),
		Flags: transports.Unsignaled}}
	if first {
		if _, err := s.Post(turn); err != nil {
			return err
		}
	} else if _, err := s.Post(recv); err != nil {
		return err
	}
	for i := range n {
		if err := await(s, dst, transports.KindRecv); err != nil {
			return err
		}
		if first && i == n-1 {
			return nil
		}
		if _, err := s.Post(turn); err != nil {
			return err
		}
	}
	return nil
}

func benchPingPong(b *testing.B, size int) {
	near, far := benchPair(b, transports.Config{Window: 1 << 20, SendDepth: 16, RecvDepth: 16})
	defer near.Close()
	defer far.Close()
	b.ReportAllocs()
	b.ResetTimer()
	errs := make(chan error, 1)
	go func() { errs <- pingPong(far, false, b.N, size) }()
	if err := pingPong(near, true, b.N, size); err != nil {
		b.Fatal(err)
	}
	if err := <-errs; err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/2, "ns/half-rtt")
}

func BenchmarkPingPong64(b *testing.B)   { benchPingPong(b, 64) }
func BenchmarkPingPong4K(b *testing.B)   { benchPingPong(b, 4<<10) }
func BenchmarkPingPong64K(b *testing.B)  { benchPingPong(b, 64<<10) }
func BenchmarkPingPong256K(b *testing.B) { benchPingPong(b, 256<<10) }

// benchStream keeps depth writes of size bytes outstanding; an echo ends it.
func benchStream(b *testing.B, size, depth int) {
	near, far := benchPair(b, transports.Config{Window: 4 << 20, SendDepth: depth, RecvDepth: 1})
	defer near.Close()
	defer far.Close()
	b.SetBytes(int64(size))
	b.ReportAllocs()
	errs := make(chan error, 1)
	post := func(s transports.Session, op transports.Op) {
		if n, err := s.Post([]transports.Op{op}); n != 1 {
			b.Error(err)
		}
	}
	post(far, transports.Op{Kind: transports.KindRecv})
	post(near, transports.Op{Kind: transports.KindRecv})
	b.ResetTimer()
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		dst := make([]transports.Done, 16)
		err := await(far, dst, transports.KindRecv)
		if err == nil {
			post(far, transports.Op{Kind: transports.KindSend})
			err = await(far, dst, transports.KindSend)
		}
		errs <- err
	}()
	ops := make([]transports.Op, depth)
	for i := range ops {
		ops[i] = transports.Op{Kind: transports.KindWrite, Len: uint32(size), Remote: uint64(i%2) * uint64(size)}
	}
	dst := make([]transports.Done, depth+1)
	for posted, out := 0, 0; posted < b.N || out > 0; {
		if k := min(depth-out, b.N-posted); k > 0 {
			n, err := near.Post(ops[:k])
			if n != k {
				b.Fatal(err)
			}
			posted, out = posted+n, out+n
		}
		n, err := near.Poll(dst)
		if err != nil {
			b.Fatal(err)
		}
		out -= n
	}
	post(near, transports.Op{Kind: transports.KindSend})
	if err := await(near, dst, transports.KindRecv); err != nil {
		b.Fatal(err)
	}
	if err := <-errs; err != nil {
		b.Fatal(err)
	}
}

func BenchmarkWrite64(b *testing.B) { benchStream(b, 64, 64) }
func BenchmarkWrite4K(b *testing.B) { benchStream(b, 4<<10, 64) }
func BenchmarkWrite1M(b *testing.B) { benchStream(b, 1<<20, 8) }
