package stackspec

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rdmaperf/rdmaperf/reports"
)

// param declares one parameter of a layer, once: the parser, messages, completion, help and docs/reference/stacks.md
// read it. What only several parameters together say is checked where they are read.
type param[C any] struct {
	paramDoc
	set func(c *C, v value)
}

type paramDoc struct {
	name string
	kind kind
	Def  string // what holds without it; "" for a switch that is off
	Help string
}

// Shown is the parameter as messages write it: "sndbuf=BYTES".
func (d *paramDoc) Shown() string {
	if d.kind.parse == nil {
		return d.name
	}
	return d.name + "=" + d.kind.shown
}

// params are the declarations of one layer, whose configuration is C.
type params[C any] []param[C]

type declared interface{ docs() []paramDoc }

func (ps params[C]) docs() []paramDoc {
	all := make([]paramDoc, len(ps))
	for i := range ps {
		all[i] = ps[i].paramDoc
	}
	return all
}

// Read sets c by the parameters of l, in their order. Its error is a *paramError.
func (ps params[C]) Read(l Layer, c *C) error {
	for _, p := range l.Params {
		key, text, valued := strings.Cut(p, "=")
		i := slices.IndexFunc(ps, func(d param[C]) bool { return d.name == key })
		if i < 0 {
			return &paramError{given: p, all: ps.docs()}
		}
		d := &ps[i]
		v, err := d.kind.read(text, valued)
		if err != nil {
			return &paramError{given: p, of: &d.paramDoc, err: err}
		}
		d.set(c, v)
	}
	return nil
}

type noParams struct{}

func (noParams) docs() []paramDoc { return nil }

type paramError struct {
	given string
	of    *paramDoc  // nil for an unknown one
	all   []paramDoc // that the layer has
	err   error
}

func (e *paramError) Error() string {
	if e.of == nil {
		return fmt.Sprintf("unknown parameter %q", e.given)
	}
	return fmt.Sprintf("parameter %q: %v", e.given, e.err)
}

func (e *paramError) Unwrap() error { return e.err }

func (e *paramError) hint() string {
	switch {
	case e.of != nil:
		return e.of.Shown() + ", " + e.of.Help
	case len(e.all) == 0:
		return "no parameters"
	}
	names := make([]string, len(e.all))
	for i := range e.all {
		names[i] = e.all[i].Shown()
	}
	return "parameters among " + strings.Join(names, ", ")
}

// refuseParam refuses one that was given, and advises another parameter or value.
func refuseParam(given, name string, k kind, help, format string, a ...any) error {
	return &paramError{given: given, of: &paramDoc{name: name, kind: k, Help: help}, err: fmt.Errorf(format, a...)}
}

type value struct {
	text string
	n    int           // of sizes and counts
	d    time.Duration // of times
	list []value       // of lists
}

// kind is a type of values. The zero kind is a switch, which has none.
type kind struct {
	shown string // as messages write it
	parse func(s string) (value, error)
	words []string // all values there are, for completion
}

func (k kind) read(text string, valued bool) (value, error) {
	switch {
	case k.parse == nil && valued:
		return value{}, errors.New("it has no value")
	case k.parse == nil:
		return value{}, nil
	case text == "":
		return value{}, errors.New("it needs a value")
	}
	v, err := k.parse(text)
	v.text = text
	return v, err
}

var (
	switchOf = kind{}
	sizeOf   = kind{shown: "BYTES", parse: func(s string) (value, error) {
		n, err := reports.ParseSize(s)
		if err == nil && n > 1<<30 {
			err = errors.New("above the limit of 1 GiB")
		}
		return value{n: int(n)}, err
	}}
	timeOf = kind{shown: "TIME", parse: func(s string) (value, error) {
		d, err := time.ParseDuration(s)
		if err != nil || d < 0 {
			err = errors.New("want a time such as 50us")
		}
		return value{d: d}, err
	}}
	// pauseOf are short times; 0 is none at all, which configurations have a negative one for.
	pauseOf = kind{shown: "TIME", parse: func(s string) (value, error) {
		d, err := time.ParseDuration(s)
		switch {
		case err != nil || d < 0 || d > time.Minute:
			return value{}, errors.New("want 0 to 1m, such as 50us")
		case d == 0:
			d = -1
		}
		return value{d: d}, nil
	}}
)

func textOf(shown string) kind {
	return kind{shown: shown, parse: func(s string) (value, error) { return value{}, nil }}
}

func countOf(from, to int) kind {
	return kind{shown: "N", parse: func(s string) (value, error) {
		n, err := strconv.Atoi(s)
		if err != nil || n < from || n > to {
			return value{}, fmt.Errorf("want %d to %d", from, to)
		}
		return value{n: n}, nil
	}}
}

func wordOf(words ...string) kind {
	return kind{shown: strings.Join(words, "|"), words: words, parse: func(s string) (value, error) {
		if !slices.Contains(words, s) {
			return value{}, fmt.Errorf("want %s", strings.Join(words, ", "))
		}
		return value{}, nil
	}}
}

// orAuto takes "auto" too, for 0.
func orAuto(k kind) kind {
	return kind{shown: k.shown + "|auto", parse: func(s string) (value, error) {
		if s == "auto" {
			return value{}, nil
		}
		return k.parse(s)
	}}
}

func listOf(k kind, most int) kind {
	return kind{shown: k.shown + ":…", parse: func(s string) (v value, err error) {
		all := strings.Split(s, ":")
		if len(all) > most {
			return v, fmt.Errorf("%d values, at most %d", len(all), most)
		}
		for _, s := range all {
			one, err := k.parse(s)
			if err != nil {
				return v, err
			}
			v.list = append(v.list, one)
		}
		return v, nil
	}}
}
