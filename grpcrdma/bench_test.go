package grpcrdma

import (
	"context"
	"fmt"
	"io"
	"net"
	"testing"
	"time"

	pb "google.golang.org/grpc/interop/grpc_testing"
)

// BenchmarkStream is a ping-pong on the byte stream alone, client and server in
// two processes.
func BenchmarkStream(b *testing.B) {
	for _, size := range []int{64, 1 << 20} {
		for _, a := range arms {
			b.Run(fmt.Sprintf("size=%d/arm=%s", size, a.name), func(b *testing.B) {
				addr, _ := remote(b, "stream/"+a.name)
				n, done, err := over(a.cfg)
				must(b, err)
				defer done()
				var c net.Conn
				if n == nil {
					c, err = net.Dial("tcp", addr)
				} else {
					c, err = n.DialContext(soon(b), addr)
				}
				must(b, err)
				defer c.Close()
				buf, in := make([]byte, size), make([]byte, size)
				b.SetBytes(int64(2 * size))
				errs := make(chan error, 1)
				for b.Loop() {
					if size > 64<<10 { // more than both rings hold
						go func() { _, err := c.Write(buf); errs <- err }()
					} else {
						_, err := c.Write(buf)
						errs <- err
					}
					_, err := io.ReadFull(c, in)
					must(b, err)
					must(b, <-errs)
				}
			})
		}
	}
}

// BenchmarkUnary is a unary call with one outstanding, or 16, client and server
// in two processes: gRPC's HTTP/2 and fused frames, over loopback TCP and iWARP.
func BenchmarkUnary(b *testing.B) {
	for _, size := range []int{64, 1 << 20} {
		for _, calls := range []int{1, 16} {
			for _, frames := range []string{"http2", "fused"} {
				for _, a := range arms {
					b.Run(fmt.Sprintf("size=%d/calls=%d/frames=%s/arm=%s", size, calls, frames, a.name),
						func(b *testing.B) {
							addr, _ := remote(b, frames+"/"+a.name)
							n, done, err := over(a.cfg)
							must(b, err)
							defer done()
							client, end := dialFrames(b, frames, n, addr)
							defer end()
							benchUnary(b, client, size, calls)
						})
				}
			}
		}
	}
}

func benchUnary(b *testing.B, client pb.TestServiceClient, size, calls int) {
	in := &pb.SimpleRequest{ResponseSize: int32(size), Payload: &pb.Payload{Body: make([]byte, size)}}
	_, err := client.UnaryCall(soon(b), in)
	must(b, err)
	b.SetBytes(int64(2 * size))
	if calls == 1 {
		for b.Loop() {
			if _, err := client.UnaryCall(context.Background(), in); err != nil {
				b.Fatal(err)
			}
		}
		return
	}
	work := make(chan struct{}, calls)
	errs := make(chan error, calls)
	for range calls {
		go func() {
			for range work {
				if _, err := client.UnaryCall(context.Background(), in); err != nil {
					errs <- err
					return
				}
			}
			errs <- nil
		}()
	}
	start := time.Now()
	for b.Loop() {
		work <- struct{}{}
	}
	close(work)
	for range calls {
		if err := <-errs; err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.N)/time.Since(start).Seconds(), "calls/s")
}
