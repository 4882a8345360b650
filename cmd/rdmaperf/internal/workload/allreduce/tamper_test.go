package allreduce

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine/enginetest"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/allreduce/rank"
	"github.com/rdmaperf/rdmaperf/internal/leaktest"
	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/softstack/iwarp"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// link is one end of the way between a rank and its parent, in one process.
type link struct {
	in   <-chan []byte
	out  chan<- []byte
	bend func(*rank.Answer) // what arrives, where it is an answer
}

func (l link) Send(v any) error {
	text, err := json.Marshal(v)
	l.out <- text
	return err
}

func (l link) Receive(ctx context.Context, v any) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case text, ok := <-l.in:
		if !ok {
			return io.EOF
		}
		err := json.Unmarshal(text, v)
		if a, is := v.(*rank.Answer); is && l.bend != nil {
			l.bend(a)
		}
		return err
	}
}

// A word that changes between two ranks is a wrong sum, whatever the algorithm and the way.
func TestTamperingIsFoundInSums(t *testing.T) {
	const size, iterations = 24_000, 5
	for _, algorithm := range []string{"ring", "halving", "doubling"} {
		for _, back := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/back %v", algorithm, back), func(t *testing.T) {
				found := 0
				for _, part := range []float64{0.17, 0.52, 0.88} {
					p := &enginetest.Tamper{T: t, At: int64(part * size * iterations), Back: back}
					_, err := sums(t, p, rank.Run{Algorithm: algorithm, Arm: "cache", Bytes: size, Offload: "none",
						Iterations: iterations, Verify: true, Seed: 7})
					if !p.Swapped.Load() || err == nil {
						t.Errorf("at %v: swapped %v, error %v", part, p.Swapped.Load(), err)
					}
					if reports.Code(err) == reports.ExitCorruption {
						found++
					}
				}
				if found == 0 {
					t.Error("no change was seen as one of the sums")
				}
			})
		}
	}
	if times, err := sums(t, &enginetest.Tamper{T: t, At: 1 << 40}, rank.Run{Algorithm: "ring", Arm: "cache",
		Bytes: size, Offload: "none", Iterations: iterations, Verify: true}); err != nil || len(times) != 2 {
		t.Errorf("where nothing changes: %d ranks, %v", len(times), err)
	}
}

// sums has two ranks without a check of their own add through a proxy.
func sums(t *testing.T, p *enginetest.Tamper, order rank.Run) ([]*rank.Times, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	var ranks sync.WaitGroup
	defer ranks.Wait()
	defer cancel()
	links := make([]rank.Link, 2)
	for i := range links {
		down, up := make(chan []byte, 1), make(chan []byte, 1)
		links[i] = link{in: up, out: down, bend: func(a *rank.Answer) {
			if a.Addr != "" {
				near, err := p.Before(a.Addr)
				if err != nil {
					t.Error(err)
				}
				a.Addr = near
			}
		}}
		ranks.Go(func() {
			_ = rank.Serve(ctx, link{in: down, out: up}, func(string) (rdma.Device, error) {
				return iwarp.Open(iwarp.Config{NoCRC: true})
			})
			close(up)
		})
	}
	hosts := slices.Repeat([]string{"127.0.0.1"}, len(links))
	g, err := join(ctx, links, hosts, rank.Hello{Stack: "iwarp(nocrc)", Eager: 1024, Segment: 8192,
		Timeout: 5 * time.Second})
	if err != nil {
		return nil, err
	}
	return g.run(ctx, order, 10*time.Second)
}
