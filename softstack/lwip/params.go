package lwip

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// ErrParam marks a parameter whose value is not understood.
var ErrParam = errors.New("invalid parameter")

// Set takes a parameter of a stack's name, "key=value".
func (c *Config) Set(key, value string) (err error) {
	switch key {
	case "link":
		c.Link, c.Iface, _ = strings.Cut(value, ":")
		if c.Link != LinkSHM && c.Link != LinkXDP || c.Link == LinkSHM && c.Iface != "" {
			err = errors.New("want shm, xdp or xdp:IFACE")
		}
	case "copies":
		switch value {
		case "one", "two", "zero":
			c.TwoCopies, c.ByReference = value == "two", value == "zero"
		default:
			err = errors.New("one or two of what arrives, or zero of what leaves")
		}
	case "threads":
		c.Threads = value
	case "ring":
		c.Ring, err = strconv.Atoi(value)
	case "loss":
		c.Loss, err = strconv.ParseFloat(value, 64)
	case "dup":
		c.Duplicate, err = strconv.ParseFloat(value, 64)
	case "reorder":
		c.Reorder, err = strconv.ParseFloat(value, 64)
	case "delay":
		c.Delay, err = time.ParseDuration(value)
	case "jitter":
		c.Jitter, err = time.ParseDuration(value)
	case "seed":
		c.Seed, err = strconv.ParseUint(value, 10, 64)
	default:
		err = errors.New("no such parameter")
	}
	if err == nil {
		check := *c
		err = check.validate()
	}
	if err != nil {
		return fmt.Errorf("%w %s=%s: %w", ErrParam, key, value, err)
	}
	return nil
}
