// Package pagerank ranks the vertices of a graph on several nodes that share memory.
//
// The vertices are parted among the nodes. Each node writes what its vertices give into a region of its own, of which
// there are two by turns, so that one barrier an iteration is enough, and reads the regions of the others. Ranks are
// added in the order of edges, so that the answer is that of [Local] to the bit.
package pagerank

import (
	"bufio"
	"embed"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/rdmaperf/rdmaperf/transports/lite"
)

// Source is this package, to count its lines.
//
//go:embed *.go
var Source embed.FS

// damping is that of Brin and Page (1998), §2.1.1.
const damping = 0.85

// Graph is a directed one.
type Graph struct {
	Names []string
	in    [][]int32 // of each vertex: whence its edges come, in order
	out   []int32   // of each vertex: how many leave it
	Edges int
}

// Builder makes a graph of edges between names. The zero value is ready.
type Builder struct {
	g    Graph
	byID map[string]int32
}

func (b *Builder) vertex(name string) int32 {
	if b.byID == nil {
		b.byID = map[string]int32{}
	}
	v, ok := b.byID[name]
	if !ok {
		v = int32(len(b.g.Names))
		b.byID[name] = v
		b.g.Names, b.g.in, b.g.out = append(b.g.Names, name), append(b.g.in, nil), append(b.g.out, 0)
	}
	return v
}

// Add adds an edge.
func (b *Builder) Add(from, to string) {
	f, t := b.vertex(from), b.vertex(to)
	b.g.in[t] = append(b.g.in[t], f)
	b.g.out[f]++
	b.g.Edges++
}

// Graph is what was built; nothing may be added behind it.
func (b *Builder) Graph() *Graph {
	for _, in := range b.g.in {
		slices.Sort(in)
	}
	return &b.g
}

// Read takes an edge list: two names a line with white space between them; lines that begin with # are comments.
func Read(r io.Reader) (*Graph, error) {
	var b Builder
	in := bufio.NewScanner(r)
	for line := 1; in.Scan(); line++ {
		f := strings.Fields(in.Text())
		if len(f) == 0 || strings.HasPrefix(f[0], "#") {
			continue
		}
		if len(f) != 2 {
			return nil, fmt.Errorf("line %d: %d words, want the two ends of an edge", line, len(f))
		}
		b.Add(f[0], f[1])
	}
	if err := in.Err(); err != nil {
		return nil, err
	}
	if len(b.g.Names) == 0 {
		return nil, errors.New("a graph without edges")
	}
	return b.Graph(), nil
}

// rank is the new rank of a vertex from what all give, of which sink is what those without an edge give to all.
func (g *Graph) rank(v int, give []float64, sink float64) float64 {
	sum := 0.0
	for _, u := range g.in[v] {
		sum += give[u]
	}
	n := float64(len(g.Names))
	return (1-damping)/n + damping*(sum+sink/n)
}

// gives is what a vertex of some rank gives along each of its edges, or to all.
func (g *Graph) gives(v int, rank float64) float64 {
	if g.out[v] == 0 {
		return rank
	}
	return rank / float64(g.out[v])
}

func (g *Graph) sink(give []float64) (sum float64) {
	for v, n := range g.out {
		if n == 0 {
			sum += give[v]
		}
	}
	return sum
}

// Local is the answer of a single machine.
func (g *Graph) Local(iterations int) []float64 {
	n := len(g.Names)
	give, next, ranks := make([]float64, n), make([]float64, n), make([]float64, n)
	for v := range n {
		ranks[v] = 1 / float64(n)
		give[v] = g.gives(v, ranks[v])
	}
	for range iterations {
		sink := g.sink(give)
		for v := range n {
			ranks[v] = g.rank(v, give, sink)
			next[v] = g.gives(v, ranks[v])
		}
		give, next = next, give
	}
	return ranks
}

// Job is one ranking. Every node runs the same.
type Job struct {
	Name       string
	Nodes      []int
	Iterations int
}

// Run takes part as node n, and returns the ranks of all vertices; lite.ErrPeerDead when a node dies.
func (g *Graph) Run(n *lite.Node, j Job) (ranks []float64, err error) {
	c, err := n.Client(lite.ClientConfig{})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	me, all := slices.Index(j.Nodes, n.ID()), len(g.Names)
	part := func(i int) (from, to int) { return i * all / len(j.Nodes), (i + 1) * all / len(j.Nodes) }
	from, to := part(me)
	region := func(i, turn int) string { return fmt.Sprintf("%s.%d.%d", j.Name, i, turn) }
	var mine [2]lite.Handle
	for turn := range mine {
		if mine[turn], err = c.Malloc(lite.RegionConfig{Name: region(me, turn), Size: uint64(max(to-from, 1)) * 8,
			Open: lite.PermRead}); err != nil {
			return nil, err
		}
	}
	ranks, give := make([]float64, all), make([]float64, all)
	buf := make([]byte, (all+len(j.Nodes))*8)
	tell := func(turn int, value func(v int) float64) error {
		for v := from; v < to; v++ {
			binary.LittleEndian.PutUint64(buf[(v-from)*8:], math.Float64bits(value(v)))
		}
		if err := c.Write(mine[turn], 0, buf[:(to-from)*8]); err != nil {
			return err
		}
		return c.BarrierOf(j.Name, j.Nodes)
	}
	for v := from; v < to; v++ {
		ranks[v] = 1 / float64(all)
	}
	if err := tell(0, func(v int) float64 { return g.gives(v, ranks[v]) }); err != nil {
		return nil, err
	}
	var theirs [2][]lite.Handle
	for turn := range theirs {
		for i := range j.Nodes {
			h, err := c.Map(region(i, turn), lite.PermRead, "")
			if err != nil {
				return nil, err
			}
			theirs[turn] = append(theirs[turn], h)
		}
	}
	hear := func(turn int, into []float64) error {
		for i := range j.Nodes {
			lo, hi := part(i)
			if err := c.Read(theirs[turn][i], 0, buf[:(hi-lo)*8]); err != nil {
				return err
			}
			for v := lo; v < hi; v++ {
				into[v] = math.Float64frombits(binary.LittleEndian.Uint64(buf[(v-lo)*8:]))
			}
		}
		return nil
	}
	for it := range j.Iterations {
		if err := hear(it%2, give); err != nil {
			return nil, err
		}
		sink := g.sink(give)
		for v := from; v < to; v++ {
			ranks[v] = g.rank(v, give, sink)
		}
		value := func(v int) float64 { return g.gives(v, ranks[v]) }
		if it == j.Iterations-1 { // the ranks themselves
			value = func(v int) float64 { return ranks[v] }
		}
		if err := tell((it+1)%2, value); err != nil {
			return nil, err
		}
	}
	if err := hear(j.Iterations%2, ranks); err != nil {
		return nil, err
	}
	if err := c.BarrierOf(j.Name+".end", j.Nodes); err != nil {
		return nil, err
	}
	return ranks, errors.Join(c.FreeRegion(mine[0]), c.FreeRegion(mine[1]))
}
