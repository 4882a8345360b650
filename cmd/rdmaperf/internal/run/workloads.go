package run

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/room"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/values"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload"
	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/transports"
)

// workloadFlags are those of all workloads, in the order of the table.
type workloadFlags []room.Flags

func (w *workloadFlags) register(f *pflag.FlagSet) {
	for _, r := range workload.Rooms {
		flags := r.Flags()
		flags.Register(f)
		*w = append(*w, flags)
	}
}

// workloadHelp describes --workload by the table.
func workloadHelp() string {
	var list, notes []string
	for _, r := range workload.Rooms {
		s := r.Name
		if r.Summary != "" {
			s += " (" + r.Summary + ")"
		}
		list = append(list, s)
		if r.Note != "" {
			notes = append(notes, r.Note)
		}
	}
	return "comma list of " + strings.Join(list, ", ") + "; without it, " + strings.Join(notes, "; ")
}

// defaultsHelp says which operations or sizes the standard workloads have by themselves.
func defaultsHelp(of func(r *room.Room) string) string {
	var parts []string
	for _, r := range workload.Rooms {
		if s := of(r); r.Standard && s != "" {
			parts = append(parts, r.Name+" "+s)
		}
	}
	return "(default " + strings.Join(parts, ", ") + ")"
}

func defaultOps(r *room.Room) string {
	if n := len(r.Ops); n > 1 {
		return "of " + strings.Join(r.Ops[:n-1], ", ") + " and " + r.Ops[n-1]
	}
	if len(r.Ops) == 1 {
		return "of " + r.Ops[0]
	}
	return ""
}

func defaultSizes(r *room.Room) string {
	var sizes []string
	for _, n := range r.Sizes {
		sizes = append(sizes, shortSize(n))
	}
	return strings.Join(sizes, ",")
}

// shortSize writes a size as the command line takes it: 64, 4K, 1M.
func shortSize(n int) string {
	for _, u := range []struct {
		name string
		of   int
	}{{"G", 1 << 30}, {"M", 1 << 20}, {"K", 1 << 10}} {
		if n >= u.of && n%u.of == 0 {
			return fmt.Sprintf("%d%s", n/u.of, u.name)
		}
	}
	return fmt.Sprint(n)
}

// opNames lists the operations of --op.
func opNames() string {
	var names []string
	for k := transports.KindSend; k <= transports.KindCall; k++ {
		names = append(names, k.String())
	}
	return strings.Join(names, ", ")
}

// common reads what all workloads share.
func (o *Options) common(changed func(string) bool) (*room.Common, error) {
	sizes, err := values.Sizes(o.sizes)
	if err != nil {
		return nil, err
	}
	for _, op := range o.ops {
		if _, known := transports.ParseKind(op); !known {
			return nil, values.Wrong("op", "unknown operation %q: want one of %s", op, opNames())
		}
	}
	for n := 2; o.all && n <= maxAll; n *= 2 {
		sizes = append(sizes, n)
	}
	c := &room.Common{Changed: changed, Workloads: values.Unique(o.workloads), CallsOnly: o.callsOnly,
		Polling: o.polling, Pin: o.pin,
		Ops: values.Unique(o.ops), Sizes: sizes, All: o.all}
	return c, nil
}

// maxAll is the largest size of --all, perftest's.
const maxAll = 8 << 20

// share fills in what all workloads share of the plan.
func (o *Options) share(p *engine.Plan, c *room.Common) error {
	for _, flags := range o.work {
		if err := flags.Plan(p, c); err != nil {
			return err
		}
	}
	return nil
}

// points are those of all workloads that the command line means. The plan gets what
// they need beside.
func (o *Options) points(p *engine.Plan, c *room.Common) ([]engine.Point, error) {
	list, asked, err := room.Choose(workload.Rooms, c)
	if err != nil {
		return nil, err
	}
	if c.Workloads = list; asked {
		if err := o.checkWorkloads(c); err != nil {
			return nil, err
		}
	}
	if err := o.load.axes(c); err != nil {
		return nil, err
	}
	var points []engine.Point
	for _, name := range list {
		i := slices.IndexFunc(workload.Rooms, func(r *room.Room) bool { return r.Name == name })
		of, err := o.work[i].Points(p, c)
		if err != nil {
			return nil, err
		}
		points = append(points, of...)
	}
	return points, nil
}

// checkWorkloads refuses flags that the chosen workloads do not have.
func (o *Options) checkWorkloads(c *room.Common) error {
	for i, r := range workload.Rooms {
		if !slices.Contains(c.Workloads, r.Name) {
			continue
		}
		if err := o.work[i].Check(c); err != nil {
			return err
		}
	}
	for _, r := range workload.Rooms {
		if f := c.AnyOf(r.Own...); f != "" && !slices.Contains(c.Workloads, r.Name) {
			return values.Wrong(f, "for --workload %s", r.Name)
		}
	}
	return nil
}

// ofCalls tells points that only stacks which carry calls can run.
func ofCalls(pt engine.Point) bool {
	r := room.Find(workload.Rooms, pt.Workload)
	return r != nil && r.Calls
}

// callsHint names the workload that stacks of calls run by themselves.
func callsHint() string {
	for _, r := range workload.Rooms {
		if r.ForCalls {
			return "--workload " + r.Name
		}
	}
	return ""
}

// publishedOf are figures of others that workloads are read against.
func publishedOf(list []string) (all []reports.Published) {
	for _, r := range workload.Rooms {
		if slices.Contains(list, r.Name) {
			all = append(all, r.Published...)
		}
	}
	return all
}
