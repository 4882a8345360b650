package register

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/arms"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/cli"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/pairs"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/values"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/register/measure"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/register/results"
	"github.com/rdmaperf/rdmaperf/regcache"
	"github.com/rdmaperf/rdmaperf/regcache/offload"
	"github.com/rdmaperf/rdmaperf/transports"
)

// Name is the workload's.
const Name = "register"

const (
	defaultWindow = 50 * time.Millisecond // of a point; arbitrary: all of them together take some 20 s
	maxThreads    = 1024
	maxBuffers    = 1 << 16
	smallSize     = 64 << 10 // of a working set and of threads, where no size is given
	farSize       = 16 << 20 // from there on only without a detour, where no size is given: it is nothing to that
	hugePage      = 2 << 20
)

var (
	costSizes    = []int{4 << 10, 64 << 10, 1 << 20, 16 << 20, 256 << 20, 1 << 30}
	freshSizes   = []int{64 << 10, 1 << 20, 16 << 20, 64 << 20}
	scatterSizes = []int{64 << 10, 1 << 20}
)

// Patterns beside those of package measure.
const (
	patternSet     = measure.PatternSet
	patternThreads = "threads"
)

func patterns() []string {
	return append(measure.Patterns(), patternSet, patternThreads, measure.PatternReplaced)
}

// Workload implements workload.Workload.
type Workload struct {
	engine.ClientOnly
	pages, patterns []string
	sources         []string
	threads, sets   string
	capacity        int
	shared          arms.Flags
}

func (*Workload) Meta() workload.Meta {
	return workload.Meta{
		Name:    Name,
		Results: results.Results,
		Summary: "cost of memory registration, and what caching it saves",
		Examples: "rdmaperf run --workload register\n" +
			"rdmaperf run --transport iwarp,regcache+iwarp --workload register,latency --op write -s 64",
		Group:      "Workload register",
		OwnThreads: true,
		Over:       over,
	}
}

// over takes any stack where memory is pinned through io_uring.
func over(s transports.Stack, pt engine.Point) error {
	if o, err := engine.ReadOptions(pt, (*options).check); err == nil && o.Pin {
		return nil
	}
	return pairs.NoDevice(s, pt)
}

func (f *Workload) Flags(set *pflag.FlagSet) {
	set.StringSliceVar(&f.patterns, "pattern", patterns(), "register: comma list of "+strings.Join(patterns(),
		", ")+" (which buffers are registered, one after the other)")
	set.StringSliceVar(&f.sources, "source", regcache.Sources(),
		"register: of the pattern replaced, how the cache is to notice that memory of others went away; "+
			"a comma list of "+strings.Join(regcache.Sources(), ", "))
	set.StringSliceVar(&f.pages, "pages", []string{"base", "huge"},
		"register: comma list of base, huge (from 2M on: reserved ones where there are enough, else transparent ones)")
	values.ListVar(set, &f.threads, "register-threads", "1,2,4,8,16,32",
		"register: of the pattern threads, a comma list or FROM:TO:STEP")
	values.ListVar(set, &f.sets, "working-set", "16,32,48,64,80,96,128,256",
		"register: of the pattern set, buffers; a comma list or FROM:TO:STEP")
	cli.Ranged(set, &f.capacity, "capacity", 64, 1, 1<<20,
		"register: of the pattern set, most registrations that the cache keeps")
	f.shared.Register(set)
}

// Points are all sizes, pages, arms and detours of each pattern.
func (f *Workload) Points(c *workload.Common) ([]engine.Point, error) {
	if s := c.AnyOf("op", "qp", "qp-sweep", "threads", "iters", "polling"); s != "" && c.Alone() {
		return nil, values.Wrong(s, "the workload register has no connections; see --pattern and --register-threads")
	}
	for _, w := range f.patterns {
		if !slices.Contains(patterns(), w) {
			return nil, values.Wrong("pattern", "%q: want one of %s", w, strings.Join(patterns(), ", "))
		}
	}
	for _, w := range f.pages {
		if w != "base" && w != "huge" {
			return nil, values.Wrong("pages", "%q: want base or huge", w)
		}
	}
	for _, w := range f.sources {
		if !slices.Contains(regcache.Sources(), w) {
			return nil, values.Wrong("source", "%q: want one of %s", w, strings.Join(regcache.Sources(), ", "))
		}
	}
	threads, err := values.Counts("register-threads", f.threads)
	if err != nil {
		return nil, err
	}
	sets, err := values.Counts("working-set", f.sets)
	if err != nil {
		return nil, err
	}
	list, err := f.shared.Read(c.Changed)
	if err != nil {
		return nil, err
	}
	b := &builder{f: f, list: list, sizes: c.Sizes, window: defaultWindow}
	if c.Changed("duration") {
		b.window = c.Plan.Duration
	}
	b.pin = !c.Changed("transport")
	for _, w := range values.Unique(f.patterns) {
		switch w {
		case measure.PatternRepeated:
			b.product(w, costSizes, list.Arms, list.Offloads)
		case measure.PatternNew:
			b.product(w, freshSizes, list.Arms, list.Offloads)
		case patternSet:
			b.set(sets)
		case patternThreads:
			b.threads(threads)
		case measure.PatternReplaced:
			b.replaced(values.Unique(f.sources), c.Changed("source"))
		default:
			b.product(w, scatterSizes, list.Arms, list.Offloads[:1])
		}
	}
	if len(b.points) == 0 {
		return nil, values.Wrong("arms", "%w", errors.New("none of them is possible with these patterns"))
	}
	return b.fitting(c)
}

// fitting leaves out the points with sizes that were asked for and that the machine has no room for. If there is none
// with room, the first says so when it is measured.
func (b *builder) fitting(c *workload.Common) ([]engine.Point, error) {
	if len(b.sizes) == 0 {
		return b.points, nil
	}
	var fit []engine.Point
	var left, largest int
	var why string
	for _, pt := range b.points {
		o, err := engine.ReadOptions(pt, (*options).check)
		if err != nil {
			return nil, err
		}
		p, err := o.point(pt.Size)
		if err != nil {
			return nil, err
		}
		var t *measure.Target // it is not opened yet
		if o.Pin {
			t = &measure.Target{Name: "pin", Most: measure.PinMost}
		}
		most, because := measure.Most(t, p)
		if p.Bytes() <= most {
			fit = append(fit, pt)
			continue
		}
		if left++; p.Bytes() > largest {
			largest, why = p.Bytes(), aboveLimit(p.Bytes(), most, because).Error()
		}
	}
	if left == 0 || len(fit) == 0 {
		return b.points, nil
	}
	c.Left = append(c.Left, workload.Left{What: fmt.Sprintf("%d of %d points of %s", left, len(b.points), Name), Why: why})
	return fit, nil
}

func aboveLimit(bytes, most int, why string) error {
	return fmt.Errorf("%d bytes are above the limit here, %d: %s", bytes, most, why)
}

// builder makes points.
type builder struct {
	f      *Workload
	list   arms.Chosen
	sizes  []int // that were given
	window time.Duration
	pin    bool
	points []engine.Point
}

func (b *builder) add(size int, o options) {
	o.Pin, o.ODP, o.Window, o.Deferred, o.Asked, o.Alone = b.pin, b.list.ODP, b.window, b.list.Deferred,
		len(b.sizes) > 0, len(b.list.Arms) == 1
	b.points = append(b.points, engine.Point{Workload: Name, Alone: true, Time: o.Window, Op: o.Pattern, Size: size,
		Words: o.words(size), Options: engine.PackOptions(o)})
}

// product is every size with all kinds of pages, all arms and all detours.
func (b *builder) product(pattern string, own []int, list, detours []string) {
	sizes := own
	if len(b.sizes) > 0 {
		sizes = b.sizes
	}
	for _, size := range sizes {
		for _, pages := range b.f.pages {
			huge := pages == "huge"
			if huge && (size < hugePage || pattern != measure.PatternRepeated && len(b.sizes) == 0) {
				continue
			}
			for _, detour := range detours {
				if detour != "none" && size > farSize && len(b.sizes) == 0 {
					continue
				}
				for _, arm := range list {
					b.add(size, options{Pattern: pattern, Arm: arm, Huge: huge, Offload: detour})
				}
			}
		}
	}
}

// small are the sizes of patterns that are not about size.
func (b *builder) small() []int {
	if len(b.sizes) > 0 {
		return b.sizes
	}
	return []int{smallSize}
}

func (b *builder) set(buffers []int) {
	if !slices.Contains(b.list.Arms, arms.Cache) {
		return
	}
	for _, size := range b.small() {
		for _, n := range buffers {
			b.add(size, options{Pattern: patternSet, Arm: arms.Cache, Offload: b.list.Offloads[0], Buffers: n,
				Regions: b.f.capacity})
		}
	}
}

// replaced is the arm of the cache with each source. Of the sources that nobody named,
// those that the system grants.
func (b *builder) replaced(sources []string, named bool) {
	if !slices.Contains(b.list.Arms, arms.Cache) {
		return
	}
	for _, size := range b.small() {
		for _, s := range sources {
			b.add(size, options{Pattern: measure.PatternReplaced, Arm: arms.Cache, Offload: "none", Source: s,
				Named: named})
		}
	}
}

func (b *builder) threads(counts []int) {
	for _, size := range b.small() {
		for _, n := range counts {
			for _, arm := range b.list.Arms {
				if arm == arms.Prereg || arm == arms.Lazy { // a look-up as in the cache
					continue
				}
				b.add(size, options{Pattern: patternThreads, Arm: arm, Offload: b.list.Offloads[0], Threads: n})
			}
		}
	}
}

// options are those of a point.
type options struct {
	Pin      bool          `json:"pin"` // through io_uring, whatever the transport is
	ODP      bool          `json:"odp"` // was asked for
	Asked    bool          `json:"asked"`
	Alone    bool          `json:"alone"` // no other arm was asked for
	Pattern  string        `json:"pattern"`
	Arm      string        `json:"arm"`
	Huge     bool          `json:"huge"`
	Offload  string        `json:"offload"`
	Threads  int           `json:"threads"`
	Buffers  int           `json:"buffers"`
	Regions  int           `json:"regions"`
	Deferred int           `json:"deferred_bytes"`
	Source   string        `json:"source,omitempty"`
	Named    bool          `json:"source_named,omitempty"`
	Window   time.Duration `json:"window_ns"`
}

// point is what is measured.
func (o *options) point(size int) (measure.Point, error) {
	detour, err := offload.Parse(o.Offload)
	p := measure.Point{Arm: o.Arm, Size: size, Huge: o.Huge, Pattern: o.Pattern, Offload: detour, Threads: o.Threads,
		Buffers: o.Buffers, Regions: o.Regions, Deferred: o.Deferred}
	if err == nil && o.Source != "" {
		p.Source, err = regcache.ParseSource(o.Source)
	}
	if o.Pattern == patternThreads {
		p.Pattern, p.Together = measure.PatternRepeated, true
	}
	return p, err
}

func (o *options) check(size int) error {
	if _, err := o.point(size); err != nil {
		return err
	}
	switch {
	case size < 1 || size > 1<<40:
		return errors.New("sizes are 1 byte to 1 TiB")
	case o.Threads < 0 || o.Threads > maxThreads:
		return fmt.Errorf("%d threads: want 1 to %d", o.Threads, maxThreads)
	case o.Buffers < 0 || o.Buffers > maxBuffers:
		return fmt.Errorf("a working set of %d buffers: want 1 to %d", o.Buffers, maxBuffers)
	case o.Window <= 0 || o.Window > time.Hour:
		return fmt.Errorf("a window of %v: want more than 0 and at most 1h", o.Window)
	}
	return nil
}

func (o *options) words(size int) string {
	p, err := o.point(size)
	if err != nil {
		return Name + " " + strconv.Itoa(size) + " B"
	}
	return Name + " " + p.String()
}
