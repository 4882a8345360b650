package liteapps

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/cli"
	"github.com/rdmaperf/rdmaperf/transports/lite"
	"github.com/rdmaperf/rdmaperf/transports/lite/apps/local"
	"github.com/rdmaperf/rdmaperf/transports/lite/apps/pagerank"
)

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
			var stack string
			var got []float64
			err = o.withNodes(cmd.Context(), liteArena, func(nodes []*lite.Node, ids []int) error {
				stack = nodes[0].Name()
				start := time.Now()
				err := local.Each(nodes, func(i int, n *lite.Node) error {
					ranks, err := g.Run(n, pagerank.Job{Name: "rank", Nodes: ids, Iterations: iterations})
					if i == 0 {
						got = ranks
					}
					return err
				})
				a.took = time.Since(start)
				return err
			})
			if err != nil {
				return err
			}
			a.same = slices.Equal(got, want)
			a.rate = fmt.Sprintf("%d iterations, %.0f edges a second", iterations,
				perSecond(g.Edges*iterations, a.took))
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
			return a.print(cmd.OutOrStdout(), o, stack)
		},
	}
	cmd.Flags().StringVar(&edges, "edges", "", "file with an edge a line, two names")
	cli.Ranged(cmd.Flags(), &iterations, "iterations", 30, 1, 1e6, "iterations")
	cli.Ranged(cmd.Flags(), &top, "top", 5, 0, 1e6, "vertices to print")
	return cmd
}
