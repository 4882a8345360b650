package liteapps

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/cli"
	"github.com/rdmaperf/rdmaperf/transports/lite"
	"github.com/rdmaperf/rdmaperf/transports/lite/apps/local"
	"github.com/rdmaperf/rdmaperf/transports/lite/apps/wordcount"
)

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
			bytes := int64(0)
			for _, f := range files {
				st, err := os.Stat(f)
				if err == nil && !st.Mode().IsRegular() {
					err = fmt.Errorf("%s is no regular file", f)
				}
				if err != nil {
					return cli.Usage("lite wordcount", err, "files that are there")
				}
				bytes += st.Size()
			}
			start := time.Now()
			want, err := wordcount.Local(files)
			if err != nil {
				return err
			}
			a.alone = time.Since(start)
			var stack string
			var got wordcount.Counts
			taken := make([]int, o.nodes)
			err = o.withNodes(cmd.Context(), liteArena, func(nodes []*lite.Node, ids []int) error {
				stack = nodes[0].Name()
				start := time.Now()
				err := local.Each(nodes, func(i int, n *lite.Node) error {
					all, files, err := wordcount.Run(n, wordcount.Job{Name: "words", Nodes: ids, Files: files})
					if taken[i] = files; i == 0 {
						got = all
					}
					return err
				})
				a.took = time.Since(start)
				return err
			})
			if err != nil {
				return err
			}
			a.same = maps.Equal(got, want)
			a.rate = fmt.Sprintf("%.1f MiB a second", perSecond(int(bytes), a.took)/(1<<20))
			words := slices.SortedFunc(maps.Keys(got),
				func(x, y string) int { return cmp.Or(cmp.Compare(got[y], got[x]), cmp.Compare(x, y)) })
			line := "most       "
			for _, w := range words[:min(top, len(words))] {
				line += fmt.Sprintf("%s %d  ", w, got[w])
			}
			a.details = []string{fmt.Sprintf("words      %d different; files taken by each node: %v", len(got),
				taken), line}
			return a.print(cmd.OutOrStdout(), o, stack)
		},
	}
	cli.Ranged(cmd.Flags(), &top, "top", 5, 0, 1e6, "words to print")
	return cmd
}
