package hol

import (
	"cmp"
	"fmt"
	"time"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/transports"
)

// Defaults and limits of [Options].
const (
	defaultBulkDepth = 16
	defaultProbeSize = 64

	// defaultProbeInterval keeps probes rare enough not to be a load themselves,
	// and gives the 1000 samples of a trustworthy p99 in half a second.
	defaultProbeInterval = 500 * time.Microsecond

	// maxProbeInterval is below every sensible timeout: a longer pause could not be
	// distinguished from a peer that is gone.
	maxProbeInterval = time.Second

	// defaultAppSlice and defaultAppWindow keep 256 KiB outstanding, above the
	// bandwidth-delay product of 100 Gb/s over 20 µs.
	defaultAppSlice  = 64 << 10
	defaultAppWindow = 4
	minAppSlice      = 1 << 10
)

// Options are what only points of this workload have, beside the size and the operation of
// the bulk and the variant. The zero value of a field that has a default means the default.
//
// A ProbeInterval of 0 is a closed loop: each probe starts when the one before is back. With
// ProbeOne it is one, too, and the interval the least time between two starts; without,
// probes are due at it.
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

// NewPoint is a point. Options beside those of its variant are left out.
func NewPoint(op string, size int, variant string, o Options) engine.Point {
	if variant != AppSlicing {
		o.AppSlice, o.AppWindow = 0, 0
	}
	// probes alone, bulk alone, both
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
	pt.Needs.Depth, pt.Needs.DepthOf = holDepth(o, k), fmt.Sprintf("bulk depth %d with its receives", o.BulkDepth)
	if n := o.AppWindow + probeSlots(k); variant == AppSlicing && n > pt.Needs.Depth {
		pt.Needs.Depth, pt.Needs.DepthOf = n, fmt.Sprintf("application window %d with its probes", o.AppWindow)
	}
	return pt
}

// optionsOf are those of a point, with their defaults.
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

// validateOptions checks those of a point.
func validateOptions(pt engine.Point) error {
	o, err := optionsOf(pt)
	switch {
	case err != nil:
		return err
	case o.BulkDepth < 1 || o.BulkDepth > engine.MaxDepth/2:
		return fmt.Errorf("bulk depth %d: want 1 to %d", o.BulkDepth, engine.MaxDepth/2)
	case o.ProbeSize < 1 || o.ProbeSize >= pt.Size:
		return fmt.Errorf("probe size %d: want at least 1 byte, and less than the bulk size of %d", o.ProbeSize, pt.Size)
	case o.AppSlice < minAppSlice || o.AppSlice > engine.MaxSize:
		return fmt.Errorf("application slice %d: want 1 KiB to 2 GiB", o.AppSlice)
	case o.AppWindow < 1 || o.AppWindow > engine.MaxDepth/2:
		return fmt.Errorf("application window %d: want 1 to %d slices", o.AppWindow, engine.MaxDepth/2)
	case o.ProbeInterval < 0 || o.ProbeInterval > maxProbeInterval:
		return fmt.Errorf("probe interval %v: want 0 to %v", o.ProbeInterval, maxProbeInterval)
	}
	return nil
}

// setup is what both sides keep with a shape. What it slices is 0 in other variants.
type setup struct {
	Options
	probeSlots int // probes under way at once
}

// setUp is that of a shape, whose options were checked.
func setUp(sh *engine.Shape) *setup {
	if s, ok := sh.Private.(*setup); ok {
		return s
	}
	o, _ := optionsOf(sh.Point)
	if sh.Variant != AppSlicing {
		o.AppSlice, o.AppWindow = 0, 0
	}
	s := &setup{o, probeSlots(sh.Kind())}
	sh.Private = s
	return s
}
