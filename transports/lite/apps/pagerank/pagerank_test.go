package pagerank

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rdmaperf/rdmaperf/internal/expect"
	"github.com/rdmaperf/rdmaperf/transports/lite"
	"github.com/rdmaperf/rdmaperf/transports/lite/apps/local"
	"github.com/rdmaperf/rdmaperf/transports/lite/apps/local/localtest"
)

func random(vertices, edges int) *Graph {
	rng := rand.New(rand.NewPCG(3, 4))
	var b Builder
	for range edges {
		b.Add(fmt.Sprint(rng.IntN(vertices)), fmt.Sprint(int(math.Sqrt(float64(rng.IntN(vertices*vertices))))))
	}
	return b.Graph()
}

// A circle is equal by its symmetry, a star is worth what the formula says: 1+d*k for
// the middle against 1 for the k others, and sinks give to all.
func TestKnownAnswers(t *testing.T) {
	g := expect.Get(Read(strings.NewReader("# a circle\na b\nb c\nc d\nd a\n")))(t)
	for v, r := range g.Local(30) {
		if math.Abs(r-0.25) > 1e-12 {
			t.Errorf("%s: %g", g.Names[v], r)
		}
	}
	g = expect.Get(Read(strings.NewReader("a m\nb m\nc m\n")))(t)
	ranks, sum := g.Local(200), 0.0
	for _, r := range ranks {
		sum += r
	}
	m := slices.Index(g.Names, "m")
	if other := ranks[(m+1)%4]; math.Abs(sum-1) > 1e-12 || math.Abs(ranks[m]/other-(1+3*damping)) > 1e-9 {
		t.Errorf("sum %g, %v", sum, ranks)
	}
	if _, err := Read(strings.NewReader("a b c\n")); err == nil {
		t.Error("three ends of an edge were taken")
	}
}

// Four nodes have the answer of one machine, to the bit.
func TestFourNodesRankAsOneMachine(t *testing.T) {
	for _, g := range []*Graph{random(500, 4000), random(3, 5)} { // more vertices than nodes, and fewer
		want := g.Local(15)
		c := localtest.Open(t, 4)
		err := local.Each(c.Nodes, func(i int, n *lite.Node) error {
			got, err := g.Run(n, Job{Name: "pr", Nodes: []int{0, 1, 2, 3}, Iterations: 15})
			if err == nil && !slices.Equal(got, want) {
				t.Errorf("node %d has other ranks", i)
			}
			return err
		})
		expect.OK(t, err)
	}
}

func TestADeadNodeIsAnError(t *testing.T) {
	g := random(2000, 20000)
	c := localtest.Open(t, 3)
	start := time.Now()
	errs := make([]error, 2)
	time.AfterFunc(time.Second/2, func() { c.Kill(2) }) // all have mapped all by then
	local.Each(c.Nodes, func(i int, n *lite.Node) error {
		_, err := g.Run(n, Job{Name: "pr", Nodes: []int{0, 1, 2}, Iterations: 1 << 30})
		if i < 2 {
			errs[i] = err
		}
		return nil
	})
	for i, err := range errs {
		expect.Is(t, fmt.Sprintf("node %d after %v", i, time.Since(start)), err, lite.ErrPeerDead)
	}
}
