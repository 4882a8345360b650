// Package hol is the workload of head-of-line blocking: small probes beside a bulk stream.
//
// A probe is a send that the target answers with the bytes that came. Bulk is written into window slots, or sent. In
// same-qp both travel on one QP; in two-qp the probes have their own, driven by the same thread; device is two-qp where
// one scheduler serves all QPs. In app-slicing the client cuts bulk writes itself and keeps few outstanding.
//
// Lengths tell messages apart: probes are shorter than bulk, and an empty message is a barrier, its answer or a credit.
// Bulk is cut out of one source ([drive.Cuts]), so each message has a number. The target compares that of a send on
// arrival. A write completes nothing there: behind passes that the seed chooses the client asks for a comparison.
//
// By calls, one caller makes probes, and others bulk calls with a large request and an answer of a few bytes.
package hol

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/pflag"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/values"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload"
	"github.com/rdmaperf/rdmaperf/transports"
)

const Name = "hol"

// Variants, as --hol-arm and HOL.Arm spell them.
const (
	SameQP     = "same-qp"     // probes and bulk share one QP
	TwoQP      = "two-qp"      // probes have a QP of their own on the same device
	AppSlicing = "app-slicing" // one QP, and the application cuts the bulk itself
	Device     = "device"      // as two-qp, where one scheduler serves all QPs of a device
)

var (
	variants     = []string{SameQP, TwoQP, AppSlicing, Device}
	callVariants = []string{SameQP, TwoQP, Device}
)

// Defaults and limits of [Options].
const (
	defaultBulkDepth = 16
	defaultProbeSize = 64
	// defaultProbeInterval is no load by itself, and gives the 1000 samples of a p99 in half a second.
	defaultProbeInterval = 500 * time.Microsecond
	// maxProbeInterval is below every sensible timeout: a longer pause looks like a peer that is gone.
	maxProbeInterval = time.Second
	// defaultAppSlice and defaultAppWindow keep 256 KiB outstanding, above what 100 Gb/s over 20 µs hold.
	defaultAppSlice  = 64 << 10
	defaultAppWindow = 4
	minAppSlice      = 1 << 10
)

// bulkAnswer is the answer to a bulk call in bytes, whose payload goes one way.
const bulkAnswer = 8

// Options are what only points of this workload have. A zero where there is a default means that. An interval of 0 is a
// closed loop; with ProbeOne it is the least time between two starts of one, else probes are due at it.
type Options struct {
	BulkDepth     int           `json:"bulk_depth,omitempty"` // bulk operations outstanding; default 16
	ProbeSize     int           `json:"probe_size,omitempty"` // bytes; default 64
	ProbeInterval time.Duration `json:"probe_interval_ns,omitempty"`
	ProbeOne      bool          `json:"probe_one,omitempty"`
	ProbePriority uint8         `json:"probe_priority,omitempty"` // in every probe's work request; bulk has 0

	// In the variant app-slicing: bytes of a slice, and how many are outstanding.
	AppSlice  int `json:"app_slice_bytes,omitempty"`
	AppWindow int `json:"app_window,omitempty"`
}

type Workload struct {
	bulkSizes []string
	bulkDepth int
	probeSize string
	gap       string
	interval  string
	variants  []string
	priority  uint8
	appSlice  string
	appWindow int
}

func (*Workload) Meta() workload.Meta {
	return workload.Meta{
		Name:    Name,
		Results: results,
		Summary: "head-of-line blocking: small operations behind bulk ones",
		Examples: "rdmaperf run --transport iwarp,sched+iwarp --workload hol --bulk-size 64K,1M\n" +
			"rdmaperf run --transport iwarp,sched+iwarp --workload hol --hol-arm same-qp,two-qp,app-slicing\n" +
			"rdmaperf run --transport 'iwarp,sched(slice=16K)+iwarp,sched(slice=64K)+iwarp' --workload hol",
		Note:     "hol is skipped with --op, --size, --all, --qp, --qp-sweep, --threads or --polling event",
		Group:    "Workload hol",
		Standard: true,
		Slices:   true,
		Words:    map[string][]string{"hol-arm": variants},
		Ops:      []string{"write", "call"},
	}
}

func (h *Workload) Flags(f *pflag.FlagSet) {
	f.StringSliceVar(&h.variants, "hol-arm", []string{SameQP, TwoQP},
		"hol: comma list of same-qp, two-qp (the probes on a QP, or a connection of calls, of their own), "+
			"app-slicing (the application cuts bulk writes itself and keeps few slices outstanding), device (two-qp, "+
			"and one scheduler serves all QPs of the device: on stacks with sched, by scope=device)")
	f.StringSliceVar(&h.bulkSizes, "bulk-size", []string{"1M"}, "hol: comma list of bulk sizes")
	f.IntVar(&h.bulkDepth, "bulk-depth", defaultBulkDepth, "hol: bulk operations outstanding")
	f.StringVar(&h.probeSize, "probe-size", strconv.Itoa(defaultProbeSize), "hol: size of the probes")
	f.StringVar(&h.gap, "probe-gap", defaultProbeInterval.String(),
		"hol: one probe at a time, and between the starts of two at least this time; 0: each starts when the one "+
			"before is back")
	f.StringVar(&h.interval, "probe-interval", "",
		"hol: instead, probes are due at this interval, answered or not; 0 is --probe-gap 0. Where the path does not "+
			"keep up the point is marked saturated, and its gain not shown")
	f.Uint8Var(&h.priority, "probe-priority", 1,
		"hol: of the probes' work requests or calls, for stacks that schedule by it; bulk has 0")
	f.StringVar(&h.appSlice, "app-slice", strconv.Itoa(defaultAppSlice>>10)+"K",
		"hol: bytes of a slice in the variant app-slicing")
	f.IntVar(&h.appWindow, "app-window", defaultAppWindow, "hol: slices outstanding in the variant app-slicing")
}

func (h *Workload) read(c *workload.Common) (o Options, err error) {
	o.BulkDepth, o.ProbePriority, o.AppWindow = h.bulkDepth, h.priority, h.appWindow
	if h.bulkDepth < 1 {
		return o, values.Wrong("bulk-depth", "%d: want at least 1", h.bulkDepth)
	}
	if h.appWindow < 1 {
		return o, values.Wrong("app-window", "%d: want at least 1", h.appWindow)
	}
	for _, f := range []struct {
		flag, text, least string
		to                *int
	}{{"app-slice", h.appSlice, "1K", &o.AppSlice}, {"probe-size", h.probeSize, "1 byte", &o.ProbeSize}} {
		if *f.to, err = values.Bytes(f.text); err != nil {
			return o, values.Wrong(f.flag, "%w", err)
		}
		if *f.to < 1 {
			return o, values.Wrong(f.flag, "%s: it starts at %s", f.text, f.least)
		}
	}
	flag, text := "probe-gap", h.gap
	if c.Changed("probe-interval") {
		if c.Changed(flag) {
			return o, values.Wrong("probe-interval", "it and --%s exclude each other", flag)
		}
		flag, text = "probe-interval", h.interval
	}
	if o.ProbeInterval, err = time.ParseDuration(text); err != nil || o.ProbeInterval < 0 {
		return o, values.Wrong(flag, "%q: want a time such as 500us, or 0", text)
	}
	o.ProbeOne = flag == "probe-gap" && o.ProbeInterval > 0
	return o, nil
}

// Points are all bulk sizes in all variants. Nobody named the workload where it is left out.
func (h *Workload) Points(c *workload.Common) ([]engine.Point, error) {
	o, err := h.read(c)
	threads, sizes := c.AnyOf("qp", "qp-sweep", "threads"), c.AnyOf("size", "all")
	slicing := c.AnyOf("app-slice", "app-window")
	switch {
	case err != nil:
		return nil, err
	case !c.Named && (threads != "" || sizes != "" || c.Changed("op") || c.Plan.Polling == engine.PollingEvent):
		return nil, nil
	case slicing != "" && !slices.Contains(values.Unique(h.variants), AppSlicing):
		return nil, values.Wrong(slicing, "only for --hol-arm %s", AppSlicing)
	case threads != "":
		return nil, values.Wrong("workload", "%s has one thread, and a QP or two by --hol-arm", Name)
	case sizes != "" && c.Alone():
		return nil, errors.New("the sizes of " + Name + " are --bulk-size and --probe-size")
	}
	call := transports.KindCall.String()
	var points []engine.Point
	for _, op := range c.OpsOf(h.Meta().Ops) {
		for _, s := range values.Unique(h.bulkSizes) {
			n, err := values.Bytes(s)
			if err != nil {
				return nil, values.Wrong("bulk-size", "%w", err)
			}
			for _, variant := range values.Unique(h.variants) {
				if len(c.Ops) == 0 && op == call && !slices.Contains(callVariants, variant) {
					continue // nobody asked for calls
				}
				points = append(points, NewPoint(op, n, variant, o))
			}
		}
	}
	return workload.Checked(points, check)
}

// NewPoint is a point. Options beside those of its variant are left out.
func NewPoint(op string, size int, variant string, o Options) engine.Point {
	if variant != AppSlicing {
		o.AppSlice, o.AppWindow = 0, 0
	}
	pt := engine.Point{Workload: Name, Op: op, Size: size, Variant: variant, Options: engine.PackOptions(o), Windows: 3,
		Words: fmt.Sprintf("%s %s %d B %s", Name, op, size, variant),
		Needs: engine.Needs{Sessions: connections(variant)}}
	if variant == Device {
		pt.Needs.Layer, pt.Needs.Param = "sched", "scope=device"
	}
	k, _ := transports.ParseKind(op)
	if k == transports.KindCall {
		pt.Call, pt.Response = engine.CallUnary, bulkAnswer
		return pt
	}
	o.defaults()
	pt.Needs.Kinds, pt.Needs.Why = transports.Kinds(transports.KindSend), "which proves that data arrived"
	pt.Needs.Depth, pt.Needs.DepthOf = queueDepth(o, k), fmt.Sprintf("bulk depth %d with its receives", o.BulkDepth)
	if n := o.AppWindow + probeSlots(k); variant == AppSlicing && n > pt.Needs.Depth {
		pt.Needs.Depth, pt.Needs.DepthOf = n, fmt.Sprintf("application window %d with its probes", o.AppWindow)
	}
	return pt
}

func optionsOf(pt engine.Point) (o Options, err error) {
	if pt.Options != "" {
		err = pt.Options.Unpack(&o)
	}
	o.defaults()
	return o, err
}

func (o *Options) defaults() {
	o.BulkDepth = cmp.Or(o.BulkDepth, defaultBulkDepth)
	o.ProbeSize = cmp.Or(o.ProbeSize, defaultProbeSize)
	o.AppSlice = cmp.Or(o.AppSlice, defaultAppSlice)
	o.AppWindow = cmp.Or(o.AppWindow, defaultAppWindow)
}

func check(p engine.Point) error {
	o, err := optionsOf(p)
	known, call, write := variants, p.Call != "", p.Op == transports.KindWrite.String()
	if call {
		known = callVariants
	}
	switch {
	case call && p.Op != transports.KindCall.String():
		return errors.New("the operation is call")
	case call && p.Variant == AppSlicing:
		return errors.New("variant app-slicing is of write: a call is one message for the server")
	case !call && !write && p.Op != transports.KindSend.String():
		return errors.New("bulk operations are write or send")
	case !slices.Contains(known, p.Variant):
		return fmt.Errorf("variant %q: want one of %v", p.Variant, known)
	case p.Variant == AppSlicing && !write:
		return errors.New("variant app-slicing is of write: one send takes one receive, and the peer would have to put " +
			"slices together")
	case call && (p.Call != engine.CallUnary || p.Response != bulkAnswer):
		return errors.New("bulk calls are unary, with an answer of 8 bytes")
	case call && (p.QPs != 0 || p.Outstanding != 0):
		return errors.New("its connections are those of the variant, and its outstanding calls the bulk depth")
	case p.QPs != 0:
		return errors.New("its QPs are those of the variant")
	case err != nil:
		return err
	case o.BulkDepth < 1 || o.BulkDepth > engine.MaxDepth/2:
		return fmt.Errorf("bulk depth %d: want 1 to %d", o.BulkDepth, engine.MaxDepth/2)
	case o.ProbeSize < 1 || o.ProbeSize >= p.Size:
		return fmt.Errorf("probe size %d: want at least 1 byte, and less than the bulk size of %d", o.ProbeSize, p.Size)
	case o.AppSlice < minAppSlice || o.AppSlice > engine.MaxSize:
		return fmt.Errorf("application slice %d: want 1 KiB to 2 GiB", o.AppSlice)
	case o.AppWindow < 1 || o.AppWindow > engine.MaxDepth/2:
		return fmt.Errorf("application window %d: want 1 to %d slices", o.AppWindow, engine.MaxDepth/2)
	case o.ProbeInterval < 0 || o.ProbeInterval > maxProbeInterval:
		return fmt.Errorf("probe interval %v: want 0 to %v", o.ProbeInterval, maxProbeInterval)
	}
	return nil
}

func connections(variant string) int {
	if variant == TwoQP || variant == Device {
		return 2
	}
	return 1
}
