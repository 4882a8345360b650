package perftest

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
)

type option struct {
	letter, long string
	arg          string // name of its value; "": it takes none
	what         string // what it does there
	do           func(c *Command, value string) error
	differs      string // how what do does is not what perftest does; "": the same
	quiet        bool   // differs without a change of what is measured: in the table alone
	instead      string // of a refused one: why, and what to do instead
}

// String is the name that a user types most: the letter, else the long one.
func (o *option) String() string {
	if o.letter != "" {
		return "-" + o.letter
	}
	return "--" + o.long
}

// options is every option of perftest, and rdmaperf's own.
var options = slices.Concat(letterOptions, longOptions, deviceOptions, rawOptions, []option{
	{long: "transport", arg: "STACK", what: "rdmaperf's own: measure this stack, such as tcp, iwarp or sched+verbs",
		do: func(c *Command, s string) error { c.stack = s; return nil }},
})

const (
	Same    = "same"
	Differs = "differs"
	Refused = "refused"
)

// Described is one option for a table or a help text.
type Described struct {
	Letter, Long, Arg string
	What              string // it does there
	Verdict           string // Same, Differs or Refused
	Why               string // how it differs, or what to do instead
	Own               bool   // rdmaperf's, not perftest's
}

// Describe lists every option of perftest and what becomes of it.
func Describe() []Described {
	var list []Described
	for i := range options {
		o := &options[i]
		d := Described{Letter: o.letter, Long: o.long, Arg: o.arg, What: o.what, Verdict: Same, Own: o.long == "transport"}
		switch {
		case o.do == nil:
			d.Verdict, d.Why = Refused, o.instead
		case o.differs != "":
			d.Verdict, d.Why = Differs, o.differs
		}
		list = append(list, d)
	}
	return list
}

// Advice is what to tell a user who types an option of perftest that run does not have, by letter or long name.
func Advice(name string) string {
	if a := advice[name]; a != "" {
		return a
	}
	for i := range options {
		o := &options[i]
		switch {
		case o.letter != name && o.long != name:
		case o.do == nil:
			return o.instead
		case o.differs != "":
			return o.differs
		default:
			return "rdmaperf perftest takes perftest's command lines"
		}
	}
	return ""
}

var advice = map[string]string{
	"H": "every sample is --raw here", "U": "every sample is --raw here",
	"report-histogram": "every sample is --raw here", "report-unsorted": "every sample is --raw here",
	"e": "--polling event here", "events": "--polling event here",
	"N":      "the peak costs nothing here, and is always taken",
	"noPeak": "the peak costs nothing here, and is always taken",
	"A":      "--op fetch_add or cmp_swap here", "atomic_type": "--op fetch_add or cmp_swap here",
	"write_with_imm": "--op write_imm here", "send_with_imm": "--op send_imm here",
	"tclass": "--tos here", "report-histogrm": "every sample is --raw here",
	"w": "--fail-if 'bw<10Gb/s' here", "limit_bw": "--fail-if 'bw<10Gb/s' here", "y": "--fail-if 'rate<3M' here",
	"limit_msgrate": "--fail-if 'rate<3M' here",
	"out_json":      "--json FILE here", "out_json_file": "--json FILE here",
	"perform_warm_up": "--warmup here, which is on by default", "f": "--warmup here", "margin": "--warmup here",
	"cpu_util": "CPU of both sides is in every result", "W": "--counters here", "report-counters": "--counters here",
	"rate_limit": "--rate here, for latency", "V": "rdmaperf version", "outs": "--tx-depth here",
	"F": "the CPU's frequency is in the document", "CPU-freq": "the CPU's frequency is in the document",
	"z": "both sides agree over TCP", "comm_rdma_cm": "both sides agree over TCP",
}

func nothing(*Command, string) error { return nil }

func number(field func(*Command) *int, least, most int) func(*Command, string) error {
	return func(c *Command, s string) error {
		n, err := strconv.Atoi(s)
		if err != nil || n < least || n > most {
			return fmt.Errorf("want %d to %d", least, most)
		}
		*field(c) = n
		return nil
	}
}

func set(field func(*Command) *bool) func(*Command, string) error {
	return func(c *Command, _ string) error {
		*field(c) = true
		return nil
	}
}

func both(flag string) func(*Command, string) error {
	return func(c *Command, s string) error {
		if s == "" {
			return errors.New("want a value")
		}
		c.runFlags = append(c.runFlags, flag, s)
		c.serveFlags = append(c.serveFlags, flag, s)
		return nil
	}
}

func positive(field func(*Command) *float64) func(*Command, string) error {
	return func(c *Command, s string) error {
		v, err := strconv.ParseFloat(s, 64)
		if err != nil || !(v >= 0) {
			return errors.New("want a number from 0")
		}
		*field(c) = v
		return nil
	}
}
