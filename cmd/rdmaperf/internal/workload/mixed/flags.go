package mixed

import (
	"github.com/spf13/pflag"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/values"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload"
)

const Name = "mixed"

type Workload struct {
	mix, split, span string
	flush            bool
}

func (*Workload) Meta() workload.Meta {
	return workload.Meta{
		Name:    Name,
		Results: results,
		Summary: "random reads and writes of mixed block sizes, as fio issues them",
		Examples: "rdmaperf run --transport tcp,iwarp,sched+iwarp --workload mixed --rwmix 70 --bssplit 4K/70:64K/30\n" +
			"rdmaperf run --transport iwarp --workload mixed --rwmix 0,30,50,70,100 -s 4K -t 32\n" +
			"rdmaperf run --transport iwarp --workload mixed --bssplit 4K/50:64K/50,8K --rate 20000\n" +
			"rdmaperf run --transport iwarp --workload mixed --write-flush",
		Group: "Workload mixed",
		Takes: []string{"rate", "rate-sweep"},
		Words: map[string][]string{
			"rwmix":   {"70", "0,50,100", "0,30,50,70,100"},
			"bssplit": {"4K", "4K/70:64K/30", "512/10:4K/60:64K/30"},
			"span":    {"1M", "16M"},
		},
		Sizes: []int{4 << 10},
	}
}

func (f *Workload) Flags(set *pflag.FlagSet) {
	values.ListVar(set, &f.mix, "rwmix", "70",
		"mixed: reads in percent, the rest are writes; a comma list is a point each")
	set.StringVar(&f.split, "bssplit", "",
		"mixed: block sizes and their percentages, such as 4K/70:64K/30, behind a comma again for writes (default "+
			"each of --size by itself)")
	set.StringVar(&f.span, "span", "16M",
		"mixed: bytes of a connection's window that are read, and as many that are written")
	set.BoolVar(&f.flush, "write-flush", false,
		"mixed: a write is done when a read of a byte behind it is, and so has arrived; without it when it completes")
}

func (f *Workload) blame(c *workload.Common, span int) string {
	switch {
	case span > engine.SlotBudget || c.Changed("span"):
		return "span"
	case c.Changed("bssplit"):
		return "bssplit"
	}
	return "size"
}

func (f *Workload) Points(c *workload.Common) (points []engine.Point, err error) {
	switch {
	case !c.Alone():
	case len(c.Ops) > 0:
		return nil, values.Wrong("op",
			"the operations of the workload %s are reads and writes: --rwmix says how many of each", Name)
	case c.Changed("cq-mod"):
		return nil, values.Wrong("cq-mod", "the workload %s times each operation, so each completes", Name)
	case c.AnyOf("size", "all") != "" && c.Changed("bssplit"):
		return nil, values.Wrong("bssplit", "it and --%s exclude each other", c.AnyOf("size", "all"))
	}
	span, err := values.Bytes(f.span)
	if err != nil {
		return nil, values.Wrong("span", "%w", err)
	}
	mixes, err := parseMix(f.mix)
	if err != nil {
		return nil, values.Wrong("rwmix", "%w", err)
	}
	splits := [][2][]Block{}
	if c.Changed("bssplit") {
		r, w, err := parseSplits(f.split)
		if err != nil {
			return nil, values.Wrong("bssplit", "%w", err)
		}
		splits = append(splits, [2][]Block{r, w})
	} else {
		for _, n := range c.SizesOf(pointOp, f.Meta().Sizes) {
			one := []Block{{n, hundred}}
			splits = append(splits, [2][]Block{one, one})
		}
	}
	for _, s := range splits {
		for _, mix := range mixes {
			o := Options{ReadPercent: mix, Reads: s[0], Writes: s[1], Span: span, Flush: f.flush}
			if err := o.check(); err != nil {
				return nil, values.Wrong(f.blame(c, span), "%w", err)
			}
			if err := o.checkDepth(depthOf(c.Plan, &o)); err != nil {
				return nil, values.Wrong("tx-depth", "%w", err)
			}
			for _, rate := range c.Rates {
				if rate > 0 {
					if err := c.NoEvents(noEvents); err != nil {
						return nil, err
					}
				}
				for _, q := range c.QPs {
					points = append(points, engine.Point{Workload: Name, Op: pointOp, Size: o.largest(), Rate: rate,
						QPs: q, Options: engine.PackOptions(o), Words: Name + " " + o.String(), Needs: o.needs(c.Plan)})
				}
			}
		}
	}
	return points, nil
}
