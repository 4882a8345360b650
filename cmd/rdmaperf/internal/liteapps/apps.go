package liteapps

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/cli"
	"github.com/rdmaperf/rdmaperf/transports/lite"
	"github.com/rdmaperf/rdmaperf/transports/lite/apps/dsm"
	"github.com/rdmaperf/rdmaperf/transports/lite/apps/local"
	applog "github.com/rdmaperf/rdmaperf/transports/lite/apps/log"
	"github.com/rdmaperf/rdmaperf/transports/lite/apps/pagerank"
	"github.com/rdmaperf/rdmaperf/transports/lite/apps/wordcount"
)

func newLiteLog(o *liteOptions) *cobra.Command {
	var records, size int
	cmd := &cobra.Command{
		Use: "log", Short: "A distributed log: all nodes append atomically to one", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.nodes*records*(size+84) > liteArena/2 {
				return cli.Usage("lite log",
					fmt.Errorf("%d records of %d bytes a node: want at most %d MiB all together", records, size,
						liteArena>>21), "--records 2000 --size 100")
			}
			a := liteApp{name: "log", source: applog.Source, input: fmt.Sprintf("%d records of %d bytes by each node",
				records, size)}
			record := func(node, i int) []byte {
				b := bytes.Repeat([]byte{byte(node*31 + i)}, size)
				binary.LittleEndian.PutUint64(b, uint64(node))
				binary.LittleEndian.PutUint64(b[8:], uint64(i))
				return b
			}
			start := time.Now()
			var all [][]byte
			for i := range o.nodes {
				for k := range records {
					all = append(all, record(i, k))
				}
			}
			a.alone = time.Since(start)
			return o.run(cmd, &a, func(nodes []*lite.Node, ids []int) error {
				c, err := nodes[0].Client(lite.ClientConfig{})
				if err != nil {
					return err
				}
				if err := applog.Create(c, "log", uint64(o.nodes*records*(size+84)), ids); err != nil {
					return err
				}
				start := time.Now()
				if err := local.Each(nodes, func(i int, n *lite.Node) error {
					c, err := n.Client(lite.ClientConfig{})
					if err != nil {
						return err
					}
					l, err := applog.Open(c, "log")
					for k := 0; k < records && err == nil; k++ {
						_, err = l.Append(record(i, k))
					}
					return err
				}); err != nil {
					return err
				}
				a.took = time.Since(start)
				a.rate = fmt.Sprintf("%.0f appends a second", perSecond(o.nodes*records, a.took))
				l, err := applog.Open(c, "log")
				if err != nil {
					return err
				}
				next, n := make([]int, o.nodes), 0
				a.same = true
				start = time.Now()
				_, err = l.Scan(0, func(_ uint64, r []byte) error {
					n++
					node := binary.LittleEndian.Uint64(r)
					if node >= uint64(o.nodes) || !bytes.Equal(r, record(int(node), next[node])) {
						a.same = false
						return nil
					}
					next[node]++
					return nil
				})
				a.details = []string{fmt.Sprintf("read back  %d records in %s, those of each node in its order", n,
					time.Since(start).Round(10*time.Microsecond))}
				a.same = a.same && n == o.nodes*records
				return err
			})
		},
	}
	cli.Ranged(cmd.Flags(), &records, "records", 2000, 1, 1e9, "records that each node appends")
	cli.Ranged(cmd.Flags(), &size, "size", 100, 16, 1<<16, "bytes of a record")
	return cmd
}

func newLiteWordCount(o *liteOptions) *cobra.Command {
	var top int
	cmd := &cobra.Command{
		Use: "wordcount [FILE...]", Short: "MapReduce: count words of files, by default of Go's standard library",
		RunE: func(cmd *cobra.Command, files []string) (err error) {
			a := liteApp{name: "wordcount", source: wordcount.Source, input: fmt.Sprintf("%d files", len(files))}
			if len(files) == 0 {
				var root string
				if root, files, err = goSources(cmd.Context()); err != nil {
					return err
				}
				a.input = fmt.Sprintf("%d files of %s", len(files), root)
			}
			total := int64(0)
			for _, f := range files {
				st, err := os.Stat(f)
				if err == nil && !st.Mode().IsRegular() {
					err = fmt.Errorf("%s is no regular file", f)
				}
				if err != nil {
					return cli.Usage("lite wordcount", err, "files that are there")
				}
				total += st.Size()
			}
			start := time.Now()
			want, err := wordcount.Local(files)
			if err != nil {
				return err
			}
			a.alone = time.Since(start)
			return o.run(cmd, &a, func(nodes []*lite.Node, ids []int) error {
				var got wordcount.Counts
				taken := make([]int, o.nodes)
				start := time.Now()
				err := local.Each(nodes, func(i int, n *lite.Node) error {
					all, files, err := wordcount.Run(n, wordcount.Job{Name: "words", Nodes: ids, Files: files})
					if taken[i] = files; i == 0 {
						got = all
					}
					return err
				})
				a.took = time.Since(start)
				if err != nil {
					return err
				}
				a.same = maps.Equal(got, want)
				a.rate = fmt.Sprintf("%.1f MiB a second", perSecond(int(total), a.took)/(1<<20))
				words := slices.SortedFunc(maps.Keys(got),
					func(x, y string) int { return cmp.Or(cmp.Compare(got[y], got[x]), cmp.Compare(x, y)) })
				line := "most       "
				for _, w := range words[:min(top, len(words))] {
					line += fmt.Sprintf("%s %d  ", w, got[w])
				}
				a.details = []string{fmt.Sprintf("words      %d different; files taken by each node: %v", len(got), taken), line}
				return nil
			})
		},
	}
	cli.Ranged(cmd.Flags(), &top, "top", 5, 0, 1e6, "words to print")
	return cmd
}

func newLitePageRank(o *liteOptions) *cobra.Command {
	var edges string
	var iterations, top int
	cmd := &cobra.Command{
		Use: "pagerank", Short: "PageRank of a graph, by default of the imports of Go's standard library",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			g, name, err := importGraph(cmd.Context())
			if edges != "" {
				g, name, err = edgeList(edges)
			}
			if err != nil {
				return err
			}
			a := liteApp{name: "pagerank", source: pagerank.Source, input: fmt.Sprintf("%s: %d vertices, %d edges",
				name, len(g.Names), g.Edges)}
			start := time.Now()
			want := g.Local(iterations)
			a.alone = time.Since(start)
			return o.run(cmd, &a, func(nodes []*lite.Node, ids []int) error {
				var got []float64
				start := time.Now()
				err := local.Each(nodes, func(i int, n *lite.Node) error {
					ranks, err := g.Run(n, pagerank.Job{Name: "rank", Nodes: ids, Iterations: iterations})
					if i == 0 {
						got = ranks
					}
					return err
				})
				a.took = time.Since(start)
				if err != nil {
					return err
				}
				a.same = slices.Equal(got, want)
				a.rate = fmt.Sprintf("%d iterations, %.0f edges a second", iterations, perSecond(g.Edges*iterations, a.took))
				order := make([]int, len(got))
				for v := range order {
					order[v] = v
				}
				slices.SortFunc(order, func(x, y int) int { return cmp.Or(cmp.Compare(got[y], got[x]), cmp.Compare(x, y)) })
				line := "highest    "
				for _, v := range order[:min(top, len(order))] {
					line += fmt.Sprintf("%s %.4f  ", g.Names[v], got[v])
				}
				a.details = []string{line}
				return nil
			})
		},
	}
	cmd.Flags().StringVar(&edges, "edges", "", "file with an edge a line, two names")
	cli.Ranged(cmd.Flags(), &iterations, "iterations", 30, 1, 1e6, "iterations")
	cli.Ranged(cmd.Flags(), &top, "top", 5, 0, 1e6, "vertices to print")
	return cmd
}

func newLiteDSM(o *liteOptions) *cobra.Command {
	var pages, updates int
	var share float64
	cmd := &cobra.Command{
		Use: "dsm", Short: "Distributed shared memory: all nodes add to counters in the same pages", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !(share >= 0 && share <= 1) {
				return cli.Usage("lite dsm", fmt.Errorf("--writes %v: want a share of 0 to 1", share), "--writes 0.2")
			}
			a := liteApp{name: "dsm", source: dsm.Source,
				input: fmt.Sprintf("%d pages of 4096 bytes, %d accesses a node, %g of them writes", pages, updates,
					share)}
			// What each node does, as every machine would.
			step := func(rng *rand.Rand) (page, slot int, add uint64) {
				page, slot = rng.IntN(pages), rng.IntN(512)
				if rng.Float64() < share {
					add = 1 + rng.Uint64N(100)
				}
				return page, slot, add
			}
			want := make([]uint64, pages*512)
			start := time.Now()
			for i := range o.nodes {
				rng := rand.New(rand.NewPCG(1, uint64(i)))
				for range updates {
					p, s, add := step(rng)
					want[p*512+s] += add
				}
			}
			a.alone = time.Since(start)
			return o.run(cmd, &a, func(nodes []*lite.Node, ids []int) (err error) {
				mem := make([]*dsm.Memory, len(nodes))
				defer func() {
					for _, m := range mem {
						if m != nil {
							err = errors.Join(err, m.Close())
						}
					}
				}()
				for i, n := range nodes {
					if mem[i], err = dsm.Open(n, dsm.Config{Nodes: ids, Pages: pages, Port: 1}); err != nil {
						return err
					}
				}
				start := time.Now()
				if err := local.Each(nodes, func(i int, _ *lite.Node) error {
					rng := rand.New(rand.NewPCG(1, uint64(i)))
					var b [8]byte
					for range updates {
						p, s, add := step(rng)
						var err error
						if add > 0 {
							err = mem[i].Update(p, func(b []byte) {
								binary.LittleEndian.PutUint64(b[s*8:], binary.LittleEndian.Uint64(b[s*8:])+add)
							})
						} else {
							err = mem[i].Read(p, s*8, b[:])
						}
						if err != nil {
							return err
						}
					}
					return nil
				}); err != nil {
					return err
				}
				a.took = time.Since(start)
				a.rate = fmt.Sprintf("%.0f accesses a second", perSecond(o.nodes*updates, a.took))
				var fetches, ended int64
				for _, m := range mem {
					s := m.Stats()
					fetches, ended = fetches+s.Fetches, ended+s.Invalidations
				}
				a.details = []string{fmt.Sprintf("coherence  %d pages fetched, %d copies ended", fetches, ended)}
				var bad atomic.Int64
				err = local.Each(nodes, func(i int, _ *lite.Node) error {
					b := make([]byte, 4096)
					for p := range pages {
						if err := mem[i].Read(p, 0, b); err != nil {
							return err
						}
						for s := range 512 {
							if binary.LittleEndian.Uint64(b[s*8:]) != want[p*512+s] {
								bad.Add(1)
							}
						}
					}
					return nil
				})
				a.same = bad.Load() == 0
				return err
			})
		},
	}
	cli.Ranged(cmd.Flags(), &pages, "pages", 64, 1, 1<<14, "pages")
	cli.Ranged(cmd.Flags(), &updates, "accesses", 2000, 1, 1e9, "accesses by each node")
	cmd.Flags().Float64Var(&share, "writes", 0.2, "share of writes among them")
	return cmd
}
