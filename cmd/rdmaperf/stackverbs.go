package main

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
	"github.com/rdmaperf/rdmaperf/transports/verbs"
)

func openVerbs(_ *stackSet, l layer) (rdma.Device, error) {
	c, err := verbsConfig(l)
	if err != nil {
		return nil, err
	}
	return verbs.Open(c)
}

// verbsConfig reads the device and the parameters of a verbs layer.
func verbsConfig(l layer) (verbs.Config, error) {
	c := verbs.Default()
	c.Device = l.device
	for _, p := range l.params {
		var err error
		switch key, value, _ := strings.Cut(p, "="); key {
		case "port":
			c.Port, err = intParam(value, 1, 255)
		case "gid":
			c.GIDIndex, err = intParam(value, 0, 255)
		case "mtu":
			c.MTU, err = intParam(value, 256, 4096)
			if err == nil && c.MTU&(c.MTU-1) != 0 {
				err = errors.New("want 256, 512, 1024, 2048 or 4096")
			}
		case "timeout":
			c.Timeout, err = intParam(value, 1, 31)
		case "retry":
			c.Retry, err = intParam(value, 1, 7)
		case "cm":
			if c.CM = true; p != key {
				err = errors.New("it has no value")
			}
		default:
			return c, fmt.Errorf("%w %q", errParam, p)
		}
		if err != nil {
			return c, fmt.Errorf("%w %q: %w", errParam, p, err)
		}
	}
	if c.CM && (c.GIDIndex >= 0 || c.MTU != 0) {
		return c, &reports.ExitError{Code: reports.ExitUsage, Err: errors.New("rdma_cm chooses gid and mtu by the address"), Hint: "cm without gid and mtu"}
	}
	return c, nil
}

func intParam(s string, from, to int) (int, error) {
	n, err := strconv.Atoi(s)
	if err != nil || n < from || n > to {
		return 0, fmt.Errorf("want %d to %d", from, to)
	}
	return n, nil
}
