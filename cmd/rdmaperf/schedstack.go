package main

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rdmaperf/rdmaperf/sched"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

const schedParams = "strict, aging, drr, edf, fifo, slice=BYTES|auto, window=BYTES|auto, adaptive, steady, sends=whole|refuse|slice|slice-or-refuse, room=BYTES (slice), imm=whole|last, " +
	"every=TIME (aging), weights=N:… (drr), deadlines=TIME:… (edf)"

func wrapSched(l layer, below rdma.Device) (rdma.Device, error) {
	c, err := schedConfig(l)
	if err != nil {
		return nil, err
	}
	return sched.Wrap(below, c)
}

// schedConfig reads the parameters of a sched layer; the later of two that
// contradict each other holds.
func schedConfig(l layer) (c sched.Config, err error) {
	for _, p := range l.params {
		key, value, _ := strings.Cut(p, "=")
		switch key {
		case "strict", "aging", "drr", "edf", "fifo":
			c.Policy = sched.Policy(key)
		case "slice":
			c.Slice, err = autoSize(p)
		case "window":
			c.Window, err = autoSize(p)
		case "adaptive":
			c.Adaptive, c.Steady = true, false
		case "steady":
			c.Adaptive, c.Steady = false, true
		case "sends":
			c.Sends = sched.Sends(value)
		case "room":
			c.Room, err = sizeParam(p)
		case "imm":
			c.Immediates = sched.Immediates(value)
		case "every":
			c.AgeEvery, err = time.ParseDuration(value)
		case "weights":
			err = eachClass(value, func(i int, s string) (err error) { c.Weights[i], err = strconv.Atoi(s); return })
		case "deadlines":
			err = eachClass(value, func(i int, s string) (err error) { c.Deadlines[i], err = time.ParseDuration(s); return })
		default:
			return c, fmt.Errorf("%w %q", errParam, p)
		}
		if err != nil {
			return c, fmt.Errorf("%w %q: %v", errParam, p, err)
		}
	}
	return c, nil
}

// autoSize is sizeParam that takes "auto" for 0.
func autoSize(p string) (int, error) {
	if strings.HasSuffix(p, "=auto") {
		return 0, nil
	}
	return sizeParam(p)
}

// eachClass gives set the values of a list for classes 0 and up. Classes beyond
// the list take its last value.
func eachClass(list string, set func(i int, s string) error) error {
	values := strings.Split(list, ":")
	if len(values) > sched.Priorities {
		return fmt.Errorf("%d values, at most %d", len(values), sched.Priorities)
	}
	for i := range sched.Priorities {
		if err := set(i, values[min(i, len(values)-1)]); err != nil {
			return err
		}
	}
	return nil
}

var errNoSched = errors.New("--sched-slice, --sched-window and --sched-send are for a stack with sched")

// sweepSched puts each stack with a sched layer in place of itself once for every
// slice, window and way with long sends. Other stacks stay.
func sweepSched(stacks, cuts, windows, sends []string) ([]string, error) {
	if len(cuts)+len(windows)+len(sends) == 0 {
		return stacks, nil
	}
	var out []string
	swept := false
	for _, s := range stacks {
		layers, err := parseStack(s)
		if err != nil {
			return nil, err
		}
		at := slices.IndexFunc(layers, func(l layer) bool { return l.name == "sched" })
		if at < 0 {
			out = append(out, s)
			continue
		}
		swept = true
		variants := eachParam(eachParam([]layer{layers[at]}, "slice", cuts), "window", windows)
		variants = eachParam(variants, "sends", sends)
		for _, v := range variants {
			layers[at] = v
			out = append(out, stackSpec(layers))
		}
	}
	if !swept {
		return nil, errNoSched
	}
	return out, nil
}

// eachParam is every layer with every value of a parameter; without values, as it is.
func eachParam(layers []layer, key string, values []string) []layer {
	if len(values) == 0 {
		return layers
	}
	var out []layer
	for _, l := range layers {
		for _, v := range values {
			out = append(out, l.without(key).with(key+"="+v))
		}
	}
	return out
}
