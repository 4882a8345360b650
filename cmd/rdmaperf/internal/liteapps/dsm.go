package liteapps

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/cli"
	"github.com/rdmaperf/rdmaperf/transports/lite"
	"github.com/rdmaperf/rdmaperf/transports/lite/apps/dsm"
	"github.com/rdmaperf/rdmaperf/transports/lite/apps/local"
)

func newLiteDSM(o *liteOptions) *cobra.Command {
	var pages, updates int
	var share float64
	cmd := &cobra.Command{
		Use: "dsm", Short: "Distributed shared memory: all nodes add to counters in the same pages", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !(share >= 0 && share <= 1) {
				return cli.Usage("lite dsm",
					fmt.Errorf("--writes %v: want a share of 0 to 1", share), "--writes 0.2")
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
			var stack string
			err := o.withNodes(cmd.Context(), liteArena, func(nodes []*lite.Node, ids []int) (err error) {
				stack = nodes[0].Name()
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
			if err != nil {
				return err
			}
			a.rate = fmt.Sprintf("%.0f accesses a second", perSecond(o.nodes*updates, a.took))
			return a.print(cmd.OutOrStdout(), o, stack)
		},
	}
	cli.Ranged(cmd.Flags(), &pages, "pages", 64, 1, 1<<14, "pages")
	cli.Ranged(cmd.Flags(), &updates, "accesses", 2000, 1, 1e9, "accesses by each node")
	cmd.Flags().Float64Var(&share, "writes", 0.2, "share of writes among them")
	return cmd
}
