package main

import (
	"fmt"
	"strconv"
	"strings"

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
	numbers := map[string]*int{"port": &c.Port, "gid": &c.GIDIndex, "mtu": &c.MTU, "timeout": &c.Timeout, "retry": &c.Retry}
	for _, p := range l.params {
		if p == "cm" {
			c.CM = true
			continue
		}
		key, value, _ := strings.Cut(p, "=")
		number := numbers[key]
		if number == nil {
			return c, fmt.Errorf("%w %q", errParam, p)
		}
		n, err := strconv.Atoi(value)
		if err != nil {
			return c, fmt.Errorf("%w %q: want a whole number", errParam, p)
		}
		*number = n
	}
	return c, nil
}
