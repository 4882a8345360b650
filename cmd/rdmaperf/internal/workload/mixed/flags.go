package mixed

import (
	_ "embed"
	"math"
	"strconv"

	"github.com/spf13/pflag"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/drive"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/values"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload"
	"github.com/rdmaperf/rdmaperf/reports"
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

// Mixed is what reads and writes got in one window. Latencies are from the post or the intended start, until the
// completion or the read behind.
type Mixed struct {
	ReadPercent         int     `json:"read_percent"` // asked for
	AchievedReadPercent float64 `json:"achieved_read_percent"`
	Blocks              string  `json:"blocks"` // as --bssplit has them
	SpanBytes           int64   `json:"span_bytes"`
	WriteDone           string  `json:"write_done"` // completion or read

	Reads  Direction `json:"reads"`
	Writes Direction `json:"writes"`
}

// Direction is one of both. Latency is nil where nothing was measured.
type Direction struct {
	Operations          int64            `json:"operations"`
	OperationsPerSecond float64          `json:"operations_per_second"`
	BytesPerSecond      float64          `json:"bytes_per_second"`
	Latency             *reports.Latency `json:"latency,omitempty"`
	Blocks              []BlockCount     `json:"blocks"`
}

// BlockCount is how many operations had a size, and how many of a hundred were to.
type BlockCount struct {
	SizeBytes  int64 `json:"size_bytes"`
	Percent    int   `json:"percent"`
	Operations int64 `json:"operations"`
}

// Of is the detail of a mix of reads and writes, nil for any other.
func Of(r *reports.Result) *Mixed { return reports.DetailOf[Mixed](r) }

// sides are both directions, in the order of tables.
func (d *Mixed) sides() [directions]*Direction { return [directions]*Direction{&d.Reads, &d.Writes} }

// What ends a write, as Mixed.WriteDone spells it.
const (
	doneByCompletion = "completion"
	doneByRead       = "read"
)

func result(m *engine.Measurement, o *Options, res *reports.Result, out *engine.Outcome) {
	res.Op = op
	tallies, _ := out.Detail.([directions]tally)
	d := &Mixed{ReadPercent: o.ReadPercent, Blocks: o.blocks(), SpanBytes: int64(o.Span), WriteDone: doneByCompletion}
	if o.Flush {
		d.WriteDone = doneByRead
	}
	var bytes int64
	for i, to := range d.sides() {
		*to = direction(&tallies[i], o.blocksOf()[i], out)
		bytes += tallies[i].bytes
	}
	d.AchievedReadPercent = 100 * float64(d.Reads.Operations) / float64(max(d.Reads.Operations+d.Writes.Operations, 1))
	res.Detail = d
	res.Throughput = reports.NewThroughput(bytes, out.Ops, out.Window)
	if out.Rec != nil && out.Rec.Count() > 0 {
		res.Latency = new(out.Rec.Snapshot())
	}
	if out.Service != nil && m.Sh.Rate > 0 {
		res.LatencyService = new(out.Service.Snapshot())
		res.OpenLoop = drive.OpenLoopOf(m, out, m.Sh.Rate, m.Sh.Arrivals == engine.ArrivalsPoisson, out.Service.Count(),
			out.Window)
	}
}

func direction(t *tally, blocks []Block, out *engine.Outcome) Direction {
	rates := reports.NewThroughput(t.bytes, t.ops, out.Window)
	d := Direction{Operations: t.ops, OperationsPerSecond: rates.OperationsPerSecond,
		BytesPerSecond: rates.BytesPerSecond}
	for i, n := range t.blocks {
		d.Blocks = append(d.Blocks, BlockCount{SizeBytes: int64(blocks[i].Size), Percent: blocks[i].Percent,
			Operations: n})
	}
	if t.rec != nil && t.rec.Count() > 0 {
		d.Latency = new(t.rec.Snapshot())
	}
	return d
}

//go:embed schema.json
var schema string

var results = &reports.Workload{
	Name: Name, Title: "Reads and writes", Timed: true, Rated: true,
	Intro: "Reads and writes of several sizes at random places. On stacks whose writes complete when they were " +
		"handed over, the latency of a write is no round trip, unless a read behind it ends it.",
	Dims: []reports.DimDef{
		{Name: "read_percent", Unit: "%", Help: "reads of all operations, as asked for"},
		{Name: "blocks", Help: "sizes of operations, as --bssplit has them"},
		{Name: "write_done", Help: "completion, or read: a write is done when a read behind it is"},
		{Name: "span_bytes", Unit: "B", Help: "in which reads, and as much for writes, have random places"},
	},
	Latencies: []reports.DimDef{{Name: "reads", Help: "reads"}, {Name: "writes", Help: "writes"}},
	Figures: []reports.FigureDef{
		{Name: "reads.rate", Quantity: reports.QuantityRate, Better: reports.More, Help: "reads a second"},
		{Name: "reads.bw", Quantity: reports.QuantityBytes, Better: reports.More, Help: "bytes read a second"},
		{Name: "reads.operations", Quantity: reports.QuantityCount, Better: reports.Neither,
			Help: "reads in the window"},
		{Name: "writes.rate", Quantity: reports.QuantityRate, Better: reports.More, Help: "writes a second"},
		{Name: "writes.bw", Quantity: reports.QuantityBytes, Better: reports.More, Help: "bytes written a second"},
		{Name: "writes.operations", Quantity: reports.QuantityCount, Better: reports.Neither,
			Help: "writes in the window"},
		{Name: "reads.share", Quantity: reports.QuantityRatio, Better: reports.Neither,
			Help: "reads of all operations, as they were"},
	},
	Shown: []string{"reads.p50", "reads.p99", "writes.p50", "writes.p99", "reads.rate", "writes.rate", "reads.bw",
		"writes.bw", "reads.share"},
	Schema:   schema,
	Detail:   func() reports.Detail { return new(Mixed) },
	Describe: describe,
}

func (*Mixed) Member(string) string { return Name }

func describe(w *reports.Workload, r *reports.Result) {
	d := Of(r)
	r.Dims = reports.DimsOf(w.Dims, d.ReadPercent, d.Blocks, d.WriteDone, d.SpanBytes)
	var values []float64
	for i, x := range d.sides() {
		r.Latencies = append(r.Latencies, reports.LatenciesOf(w.Latencies[i:], x.Latency)...)
		if x.Operations == 0 {
			values = append(values, math.NaN(), math.NaN(), math.NaN())
			continue
		}
		values = append(values, x.OperationsPerSecond, x.BytesPerSecond, float64(x.Operations))
	}
	r.Figures = reports.FiguresOf(w.Figures, append(values, d.AchievedReadPercent/100)...)
	for i, x := range d.sides() {
		for _, b := range x.Blocks { // sizes are the user's, so that no list has their names
			r.Figures = append(r.Figures,
				reports.Figure{Name: w.Latencies[i].Name + ".size_" + strconv.FormatInt(b.SizeBytes, 10),
					Quantity: reports.QuantityCount, Better: reports.Neither, Value: float64(b.Operations)})
		}
	}
}
