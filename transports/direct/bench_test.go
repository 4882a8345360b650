package direct

import (
	"testing"

	"github.com/rdmaperf/rdmaperf/transports"
	"github.com/rdmaperf/rdmaperf/transports/memdev"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// BenchmarkWrite is a batch of posts and their polls on the memory device: its
// share that is not the device's is the cost of this package.
func BenchmarkWrite(b *testing.B) {
	const batch = 16
	cfg := transports.Config{Window: 4096, SendDepth: batch, RecvDepth: 1}
	f := memdev.NewFabric(memdev.Config{})
	var ts [2]transports.Transport
	for i, name := range []string{"near", "far"} {
		ts[i] = New(must(f.Open(name))(b))
	}
	l := must(ts[1].Listen(soon(b), "far:0", cfg))(b)
	got := make(chan transports.Session, 1)
	go func() {
		s, _, _ := l.Accept(soon(b))
		got <- s
	}()
	near := must(ts[0].Dial(soon(b), l.Addr(), nil, cfg))(b)
	far := <-got
	defer func() {
		for _, c := range []interface{ Close() error }{near, far, l, ts[0], ts[1]} {
			c.Close()
		}
	}()
	ops := make([]transports.Op, batch)
	for i := range ops {
		ops[i] = transports.Op{Kind: transports.KindWrite, Len: 64, Slot: uint32(i)}
	}
	dst := make([]transports.Done, batch)
	b.ReportAllocs()
	for b.Loop() {
		if n, err := near.Post(ops); n != batch {
			b.Fatal(err)
		}
		for n := 0; n < batch; {
			k, err := near.Poll(dst[n:])
			if err != nil || dst[0].Status != rdma.StatusSuccess {
				b.Fatal(err, dst[0].Status)
			}
			n += k
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/batch, "ns/write")
}
