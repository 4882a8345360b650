package allreduce

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine/enginetest"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/allreduce/mesh"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/workloadtest"
	"github.com/rdmaperf/rdmaperf/internal/leaktest"
	"github.com/rdmaperf/rdmaperf/softstack/iwarp"
	"github.com/rdmaperf/rdmaperf/transports/memdev"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

type link struct {
	in   <-chan []byte
	out  chan<- []byte
	bend func(*Answer) // what arrives, where it is an answer
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
		if a, is := v.(*Answer); is && l.bend != nil {
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
				workloadtest.Tampered(t, size*iterations, back, func(p *enginetest.Tamper) error {
					_, err := sums(t, p, Run{Algorithm: algorithm, Arm: "cache", Bytes: size, Offload: "none",
						Iterations: iterations, Verify: true, Seed: 7})
					return err
				}, 0.17, 0.52, 0.88)
			})
		}
	}
	if times, err := sums(t, &enginetest.Tamper{T: t, At: 1 << 40}, Run{Algorithm: "ring", Arm: "cache",
		Bytes: size, Offload: "none", Iterations: iterations, Verify: true}); err != nil || len(times) != 2 {
		t.Errorf("where nothing changes: %d ranks, %v", len(times), err)
	}
}

// sums has two ranks without a check of their own add through a proxy.
func sums(t *testing.T, p *enginetest.Tamper, order Run) ([]*Times, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	var ranks sync.WaitGroup
	defer ranks.Wait()
	defer cancel()
	links := make([]Link, 2)
	for i := range links {
		down, up := make(chan []byte, 1), make(chan []byte, 1)
		links[i] = link{in: up, out: down, bend: func(a *Answer) {
			if a.Addr != "" {
				near, err := p.Before(a.Addr)
				if err != nil {
					t.Error(err)
				}
				a.Addr = near
			}
		}}
		ranks.Go(func() {
			_ = serveRank(ctx, link{in: down, out: up}, func(string) (rdma.Device, error) {
				return iwarp.Open(iwarp.Config{NoCRC: true})
			})
			close(up)
		})
	}
	hosts := slices.Repeat([]string{"127.0.0.1"}, len(links))
	g, err := join(ctx, links, hosts, Hello{Stack: "iwarp(nocrc)",
		Config: mesh.Config{Eager: 1024, Segment: 8192, Timeout: 5 * time.Second}})
	if err != nil {
		return nil, err
	}
	return g.run(ctx, order, 10*time.Second)
}

func TestSumsAreCompared(t *testing.T) {
	for _, n := range []int{1, 7, period, period + 1, 3*period + 5} {
		v, sum := make([]float32, n), make([]float32, n)
		const ranks = 3
		for r := range ranks {
			fill(v, 5, 1, r)
			for k := range v {
				sum[k] += v[k]
			}
		}
		if err := compare(sum, 5, ranks, ranks*(ranks-1)/2); err != nil {
			t.Errorf("%d elements: %v", n, err)
		}
		if err := compare(sum, 6, ranks, ranks*(ranks-1)/2); !errors.Is(err, errSum) {
			t.Errorf("%d elements of another iteration: %v", n, err)
		}
		for _, k := range []int{0, n / 2, n - 1} {
			sum[k]++
			if err := compare(sum, 5, ranks, ranks*(ranks-1)/2); !errors.Is(err, errSum) {
				t.Errorf("element %d of %d is wrong: %v", k, n, err)
			}
			sum[k]--
		}
	}
}

// A rank says what is wrong with an order, and ends.
func TestOrdersThatMakeNoSense(t *testing.T) {
	open := func(string) (rdma.Device, error) { return memdev.NewFabric(memdev.Config{}).Open("a") }
	hello := `{"hello":{"stack":"mem","listen":"a:0","rank":0,"size":1,"eager_bytes":8,"segment_bytes":8,"timeout_ns":1000000000}}` + "\n"
	for in, want := range map[string]string{
		`{"run":{"bytes":4}}`: "out of turn",
		hello + hello:         "out of turn",
		hello + `{"run":{"algorithm":"ring","arm":"none","bytes":6,"offload":"none","iterations":1}}`: "1 iterations of 6 bytes",
		hello + `{"run":{"algorithm":"tree","arm":"none","bytes":8,"offload":"none","iterations":1}}`: "no algorithm",
		hello + `{"run":{"algorithm":"ring","arm":"some","bytes":8,"offload":"none","iterations":1}}`: "arm \\\"some\\\"",
		hello + `{"run":{"algorithm":"ring","arm":"none","bytes":8,"offload":"leap","iterations":1}}`: "offload",
	} {
		orders, answers := make(chan []byte, 2), make(chan []byte, 2)
		for line := range strings.Lines(in) {
			orders <- []byte(line)
		}
		close(orders)
		if err := serveRank(t.Context(), link{in: orders, out: answers}, open); err != nil && !errors.Is(err, io.EOF) {
			t.Errorf("%s: %v", in, err)
		}
		close(answers)
		var out []byte
		for a := range answers {
			out = append(out, a...)
		}
		if !strings.Contains(string(out), want) {
			t.Errorf("%s: answered %s, want %s", in, out, want)
		}
	}
}
