package regions

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/curves"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/pairs"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/values"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload"
	"github.com/rdmaperf/rdmaperf/reports"
)

// Name is the workload's.
const Name = "regions"

// Curves, as Result.Op names them.
const (
	opCount = "count" // x is the number of regions
	opTotal = "total" // x is the bytes of one region
	opMake  = "make"  // x likewise, of several that are made, mapped and ended
)

var set = curves.Results(reports.Workload{
	Name: Name, Title: "Regions",
	Intro: "Writes to random places of many regions, or of one large region. A device alone has a registration for " +
		"each region; LITE has one for all of them, and handles. A NIC caches few keys and translations: what it " +
		"loses when they do not fit is the left end against the right. A stack of a model is timed by the model's " +
		"clock. Latency with one write under way, rate with 16; making a region is by the host's clock.",
	Dims: []reports.DimDef{{Name: "regions", Help: "regions of one window"},
		{Name: "region_bytes", Unit: "B", Help: "a region"}},
	Figures: []reports.FigureDef{
		{Name: "rate", Quantity: reports.QuantityRate, Better: reports.More, Help: "Writes a second"},
		{Name: "latency_p50_ns", Quantity: reports.QuantityTime, Help: "Latency, median"},
		{Name: "latency_p99_ns", Quantity: reports.QuantityTime, Help: "p99"},
		{Name: "make_ns", Quantity: reports.QuantityTime, Help: "Making one region"},
		{Name: "map_ns", Quantity: reports.QuantityTime, Help: "Mapping one region by its name"},
		{Name: "end_ns", Quantity: reports.QuantityTime, Help: "Ending one region"},
	},
}, "one connection and one thread, both ends in one process", map[string]reports.DimDef{opCount: {Name: "regions"},
	opTotal: {Name: "region_bytes", Unit: "B"}, opMake: {Name: "region_bytes", Unit: "B"}})

type options struct {
	Regions int   // of Total/Regions bytes each
	Total   int64 // bytes
	Sizes   []int // of writes
	X       float64
}

const (
	maxRegions = 1 << 16
	maxTotal   = 1 << 30
	// madeBytes bounds the memory of all regions that are made at one point of that curve,
	// where several fit in, and mostMade their number. Arbitrary: enough for a mean.
	madeBytes = 64 << 20
	mostMade  = 64
)

func (o *options) check(int) error {
	switch {
	case o.Regions < 1 || o.Regions > maxRegions:
		return fmt.Errorf("%d regions: want 1 to %d", o.Regions, maxRegions)
	case o.Total < int64(o.Regions) || o.Total > maxTotal:
		return fmt.Errorf("regions of %d bytes in all: want at most %d", o.Total, maxTotal)
	case len(o.Sizes) == 0 || slices.Min(o.Sizes) < 1 || int64(slices.Max(o.Sizes)) > o.Total/int64(o.Regions):
		return fmt.Errorf("writes of %v bytes to regions of %d", o.Sizes, o.Total/int64(o.Regions))
	}
	return nil
}

func (o *options) words() string {
	return fmt.Sprintf("regions: %d of %s", o.Regions, reports.SizeLabel(o.Total/int64(o.Regions)))
}

// Workload implements workload.Workload.
type Workload struct {
	engine.ClientOnly
	counts, totals, made string
	size                 string
}

func (*Workload) Meta() workload.Meta {
	return workload.Meta{
		Name:    Name,
		Results: set,
		Summary: "writes to many memory regions, or at random in a large one",
		Examples: "rdmaperf run --transport iwarp,lite+iwarp --workload regions --regions 1,100,10000\n" +
			"rdmaperf run --transport 'model(cx3)+mem,lite+model(cx3)+mem' --workload regions",
		Group:      "Workload regions",
		OwnThreads: true,
		Over:       pairs.NoPair,
		Sizes:      []int{64, 1024},
	}
}

func (f *Workload) Flags(s *pflag.FlagSet) {
	values.ListVar(s, &f.counts, "regions", "1,16,64,128,256,1024,4096,16384,65536",
		"regions: how many, a comma list or FROM:TO:STEP")
	s.StringVar(&f.size, "region-size", "4K", "regions: bytes of each of several")
	values.ListVar(s, &f.totals, "total", "1,2,4,8,16,64,256,1024",
		"regions: MiB of one region, a comma list or FROM:TO:STEP")
	values.ListVar(s, &f.made, "make", "4K,64K,1M,4M,16M,64M,256M",
		"regions: bytes of a region, a comma list; the cost of making, mapping and ending one")
}

// Points are all curves, with all sizes of writes in each point.
func (f *Workload) Points(c *workload.Common) (points []engine.Point, err error) {
	if s := c.AnyOf("op", "qp", "qp-sweep", "threads", "polling", "duration"); s != "" && c.Alone() {
		return nil, values.Wrong(s, "the workload regions writes by one thread on one connection; see --regions, --total "+
			"and --make")
	}
	counts, err := values.Counts("regions", f.counts)
	if err != nil {
		return nil, err
	}
	totals, err := values.Counts("total", f.totals)
	if err != nil {
		return nil, err
	}
	each, err := reports.ParseSize(f.size)
	if err != nil || each < 1 {
		return nil, values.Wrong("region-size", "%q: want bytes, such as 4K", f.size)
	}
	sizes := c.SizesOf("", f.Meta().Sizes)
	add := func(flag, op string, o options) error {
		if err := o.check(0); err != nil {
			return values.Wrong(flag, "%v", err)
		}
		points = append(points, engine.Point{Workload: Name, Alone: true, Op: op, Size: sizes[0], Words: o.words(),
			Options: engine.PackOptions(o)})
		return nil
	}
	// Who names one curve wants that one.
	named := c.Changed("total") || c.Changed("regions") || c.Changed("make")
	if !named || c.Changed("regions") {
		for _, n := range counts {
			if err := add("regions", opCount, options{n, int64(n) * int64(each), sizes, float64(n)}); err != nil {
				return nil, err
			}
		}
	}
	if !named || c.Changed("total") {
		for _, n := range totals {
			if err := add("total", opTotal, options{1, int64(n) << 20, sizes, float64(n) * (1 << 20)}); err != nil {
				return nil, err
			}
		}
	}
	if !named || c.Changed("make") {
		for word := range strings.SplitSeq(f.made, ",") {
			n, err := values.Bytes(word)
			if err != nil {
				return nil, values.Wrong("make", "%w", err)
			}
			count := min(max(madeBytes/max(n, 1), 1), mostMade)
			// One write of each region says that it is there.
			if err := add("make", opMake, options{count, int64(count) * int64(n), []int{min(sizes[0], max(n, 1))},
				float64(n)}); err != nil {
				return nil, err
			}
		}
	}
	return points, nil
}
