package perftest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// ErrRefused marks an option that perftest has and rdmaperf does not do.
var ErrRefused = errors.New("refused")

type refusal struct{ error }

func (*refusal) Is(target error) bool { return target == ErrRefused }

// Parse reads a command line as perftest's getopt_long does, the host anywhere.
func Parse(t Test, args []string) (*Command, error) {
	c := newCommand(t)
	var hosts []string
	for i := 0; i < len(args); i++ {
		a := args[i]
		next := func() (string, bool) {
			if i++; i < len(args) {
				return args[i], true
			}
			return "", false
		}
		var err error
		switch {
		case a == "--":
			hosts = append(hosts, args[i+1:]...)
			i = len(args)
		case strings.HasPrefix(a, "--"):
			err = c.long(a[2:], next)
		case strings.HasPrefix(a, "-") && a != "-":
			err = c.letters(a[1:], next)
		default:
			hosts = append(hosts, a)
		}
		if err != nil {
			return nil, err
		}
	}
	if len(hosts) > 1 {
		return nil, fmt.Errorf("one host at most, got %q", hosts)
	}
	if len(hosts) == 1 {
		c.Host = hosts[0]
	}
	return c, c.check()
}

func (c *Command) long(word string, next func() (string, bool)) error {
	name, value, has := strings.Cut(word, "=")
	o, err := longOption(name)
	if err != nil {
		return err
	}
	switch {
	case o.arg == "" && has:
		return fmt.Errorf("--%s takes no value", o.long)
	case o.arg != "" && !has:
		var ok bool
		if value, ok = next(); !ok {
			return fmt.Errorf("--%s needs a value", o.long)
		}
	}
	return c.apply(o, value)
}

func (c *Command) letters(word string, next func() (string, bool)) error {
	for len(word) > 0 {
		letter, value := word[:1], ""
		word = word[1:]
		i := slices.IndexFunc(options, func(o option) bool { return o.letter == letter })
		if i < 0 {
			return fmt.Errorf("perftest has no option -%s", letter)
		}
		if options[i].arg != "" {
			if value, word = word, ""; value == "" {
				var ok bool
				if value, ok = next(); !ok {
					return fmt.Errorf("-%s needs a value", letter)
				}
			}
		}
		if err := c.apply(&options[i], value); err != nil {
			return err
		}
	}
	return nil
}

func longOption(name string) (*option, error) {
	var found []*option
	for i := range options {
		o := &options[i]
		if o.long == name {
			return o, nil
		}
		if name != "" && strings.HasPrefix(o.long, name) {
			found = append(found, o)
		}
	}
	switch len(found) {
	case 0:
		return nil, fmt.Errorf("perftest has no option --%s", name)
	case 1:
		return found[0], nil
	}
	var names []string
	for _, o := range found {
		names = append(names, "--"+o.long)
	}
	return nil, fmt.Errorf("--%s may be %s", name, strings.Join(names, " or "))
}

func (c *Command) apply(o *option, value string) error {
	if o.do == nil {
		return &refusal{fmt.Errorf("%s: %s", o, o.instead)}
	}
	if err := o.do(c, value); err != nil {
		return fmt.Errorf("%s %s: %w", o, value, err)
	}
	if o.differs != "" && !o.quiet {
		c.Remarks = append(c.Remarks, o.String()+": "+o.differs)
	}
	return nil
}

func (c *Command) check() error {
	switch {
	case c.Help || c.Version:
	case c.duration != "" && c.all:
		return fmt.Errorf("-D and -a exclude each other")
	case c.duration != "" && c.iters != "":
		return fmt.Errorf("-D and -n exclude each other")
	case c.all && c.size != "":
		return fmt.Errorf("-a and -s exclude each other")
	case (c.Unsorted || c.Histogram) && !c.Test.latency:
		return fmt.Errorf("-H and -U are for latency tests")
	case (c.Unsorted || c.Histogram) && c.duration != "":
		return fmt.Errorf("-H and -U are for a number of iterations, without -D")
	case c.both && c.Test.latency:
		return fmt.Errorf("-b is for bandwidth tests")
	case c.Output == "latency" != c.Test.latency && c.Output != "":
		return fmt.Errorf("--output=%s is not what %s measures", c.Output, c.Test.Name)
	}
	return nil
}
