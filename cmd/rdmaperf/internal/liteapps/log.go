package liteapps

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/cli"
	"github.com/rdmaperf/rdmaperf/transports/lite"
	"github.com/rdmaperf/rdmaperf/transports/lite/apps/local"
	applog "github.com/rdmaperf/rdmaperf/transports/lite/apps/log"
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
			var stack string
			err := o.withNodes(cmd.Context(), liteArena, func(nodes []*lite.Node, ids []int) error {
				stack = nodes[0].Name()
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
			if err != nil {
				return err
			}
			start := time.Now()
			var all [][]byte
			for i := range o.nodes {
				for k := range records {
					all = append(all, record(i, k))
				}
			}
			a.alone = time.Since(start)
			_ = all
			return a.print(cmd.OutOrStdout(), o, stack)
		},
	}
	cli.Ranged(cmd.Flags(), &records, "records", 2000, 1, 1e9, "records that each node appends")
	cli.Ranged(cmd.Flags(), &size, "size", 100, 16, 1<<16, "bytes of a record")
	return cmd
}
