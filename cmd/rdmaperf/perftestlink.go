package main

import (
	"net"
	"net/netip"
	"slices"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/perftest"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/stackspec"
	"github.com/rdmaperf/rdmaperf/transports/verbs"
)

// perftestLink describes a side of a test. host is the other side, or the own address by which that one came.
func perftestLink(c *perftest.Command, stack, host string) perftest.Link {
	l := perftest.Link{Device: stack, Stack: stack, GID: -1, IWARP: stackspec.SpeaksIWARP(stack)}
	args := c.ServeArgs() // -d, -i and -x
	value := func(flag string) string {
		if i := slices.Index(args, flag); i >= 0 {
			return args[i+1]
		}
		return ""
	}
	named, port, index, ok := stackspec.OnVerbs(stack, value("-d"), value("-i"))
	if !ok {
		return l
	}
	l.Device, l.MTU, l.IWARP = named.Name, port.MTU, named.Transport == "iWARP"
	if l.Layer = port.LinkLayer; l.Layer == "InfiniBand" {
		l.Layer = "IB"
	}
	if n := c.MTU(); n > 0 {
		l.MTU = n
	}
	if asked, cm := c.GID(); !cm && asked >= 0 {
		l.GID = asked
	} else if !cm && l.Layer == "Ethernet" {
		if n, err := verbs.GIDIndex(named.Name, index, localAddr(host)); err == nil {
			l.GID = n
		}
	}
	return l
}

func localAddr(host string) netip.Addr {
	c, err := net.Dial("udp", net.JoinHostPort(host, "9"))
	if err != nil {
		return netip.Addr{}
	}
	defer c.Close()
	return c.LocalAddr().(*net.UDPAddr).AddrPort().Addr().Unmap()
}
