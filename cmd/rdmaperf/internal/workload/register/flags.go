package register

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/arms"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/cli"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/pairs"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/values"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload"
	"github.com/rdmaperf/rdmaperf/regcache"
	"github.com/rdmaperf/rdmaperf/regcache/offload"
	"github.com/rdmaperf/rdmaperf/transports"
)

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
		Results: results,
		Summary: "cost of memory registration, and what caching it saves",
		Examples: "rdmaperf run --workload register\n" +
			"rdmaperf run --transport iwarp,regcache+iwarp --workload register,latency --op write -s 64",
		Group:      "Workload register",
		OwnThreads: true,
		Over:       over,
	}
}

func over(s transports.Stack, pt engine.Point) error {
	if o, err := engine.ReadOptions(pt, (*options).check); err == nil && o.Pin {
		return nil
	}
	return pairs.NoDevice(s, pt)
}

func (f *Workload) Flags(set *pflag.FlagSet) {
	set.StringSliceVar(&f.patterns, "pattern", Patterns(), "register: comma list of "+strings.Join(Patterns(),
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

func (f *Workload) Points(c *workload.Common) ([]engine.Point, error) {
	if s := c.AnyOf("op", "qp", "qp-sweep", "threads", "iters", "polling"); s != "" && c.Alone() {
		return nil, values.Wrong(s, "the workload register has no connections; see --pattern and --register-threads")
	}
	for _, w := range f.patterns {
		if !slices.Contains(Patterns(), w) {
			return nil, values.Wrong("pattern", "%q: want one of %s", w, strings.Join(Patterns(), ", "))
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
	b := &builder{list: list, sizes: c.Sizes, window: defaultWindow, pin: !c.Changed("transport")}
	if c.Changed("duration") {
		b.window = c.Plan.Duration
	}
	small, base := []int{smallSize}, []string{"base"}
	for _, w := range values.Unique(f.patterns) {
		switch own := []options{{}}; w {
		case PatternRepeated:
			b.product(w, costSizes, f.pages, list.Offloads, list.Arms, own)
		case PatternNew:
			b.product(w, freshSizes, f.pages, list.Offloads, list.Arms, own)
		case PatternSet:
			own = nil
			for _, n := range sets {
				own = append(own, options{Buffers: n, Regions: f.capacity})
			}
			b.product(w, small, base, list.Offloads[:1], b.only(arms.Cache), own)
		case PatternThreads:
			own = nil
			for _, n := range threads {
				own = append(own, options{Threads: n})
			}
			b.product(w, small, base, list.Offloads[:1], b.only(arms.None, arms.Cache, arms.ODP), own)
		case PatternReplaced: // with each source; of those that nobody named, those that the system grants
			own = nil
			for _, s := range values.Unique(f.sources) {
				own = append(own, options{Source: s, Named: c.Changed("source")})
			}
			b.product(w, small, base, []string{"none"}, b.only(arms.Cache), own)
		default:
			b.product(w, scatterSizes, f.pages, list.Offloads[:1], list.Arms, own)
		}
	}
	if len(b.points) == 0 {
		return nil, values.Wrong("arms", "%w", errors.New("none of them is possible with these patterns"))
	}
	return b.fitting(c)
}

// fitting leaves out named sizes that the machine has no room for, unless those are all points.
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
		var t *Target // it is not opened yet
		if o.Pin {
			t = &Target{Name: "pin", Most: PinMost}
		}
		most, because := Most(t, p)
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

type builder struct {
	list   arms.Chosen
	sizes  []int // that were given
	window time.Duration
	pin    bool
	points []engine.Point
}

// only are those of the chosen arms that a pattern has.
func (b *builder) only(has ...string) []string {
	return slices.DeleteFunc(slices.Clone(b.list.Arms), func(arm string) bool { return !slices.Contains(has, arm) })
}

func (b *builder) product(pattern string, sizes []int, pages, detours, names []string, own []options) {
	named := len(b.sizes) > 0
	if named {
		sizes = b.sizes
	}
	for _, size := range sizes {
		for _, kind := range pages {
			huge := kind == "huge"
			if huge && (size < hugePage || pattern != PatternRepeated && !named) {
				continue
			}
			for _, detour := range detours {
				if detour != "none" && size > farSize && !named {
					continue
				}
				for _, o := range own {
					for _, arm := range names {
						o.Pattern, o.Arm, o.Huge, o.Offload, o.Asked = pattern, arm, huge, detour, named
						o.Pin, o.ODP, o.Window, o.Deferred, o.Alone = b.pin, b.list.ODP, b.window, b.list.Deferred,
							len(b.list.Arms) == 1
						p, _ := o.point(size) // its words were checked
						b.points = append(b.points, engine.Point{Workload: Name, Alone: true, Time: o.Window,
							Op: o.Pattern, Size: size, Words: Name + " " + p.String(), Options: engine.PackOptions(o)})
					}
				}
			}
		}
	}
}

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

func (o *options) point(size int) (Point, error) {
	detour, err := offload.Parse(o.Offload)
	p := Point{Arm: o.Arm, Size: size, Huge: o.Huge, Pattern: o.Pattern, Offload: detour, Threads: o.Threads,
		Buffers: o.Buffers, Regions: o.Regions, Deferred: o.Deferred}
	if err == nil && o.Source != "" {
		p.Source, err = regcache.ParseSource(o.Source)
	}
	if o.Pattern == PatternThreads {
		p.Pattern, p.Together = PatternRepeated, true
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
