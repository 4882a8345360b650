package main

import (
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/cli"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/perftest"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/stackspec"
	"github.com/rdmaperf/rdmaperf/transports/verbs"
)

func perftestHelp(w io.Writer, test string) {
	fmt.Fprintf(w, "Usage:\n  %s            start a server and wait for a connection\n  %s <host>     connect to the "+
		"server at <host>\n\nBoth sides are rdmaperf; the defaults are in parentheses.\n\nOptions:\n", test, test)
	var refused []string
	for _, d := range perftest.Describe() {
		names := "    --" + d.Long
		if d.Letter != "" {
			names = "-" + d.Letter + ", --" + d.Long
		}
		if d.Verdict == perftest.Refused {
			refused = append(refused, cli.Hang(fmt.Sprintf("  %-*s%s", cli.Hanging-2, names, d.What+". "+d.Why),
				cli.Columns(os.Stdout))...)
			continue
		}
		if d.Arg != "" {
			names += "=" + d.Arg
		}
		says := d.What
		if d.Verdict == perftest.Differs {
			says += ". Here: " + d.Why
		}
		fmt.Fprintln(w, strings.Join(cli.Hang(fmt.Sprintf("  %-*s%s", cli.Hanging-2, names, says),
			cli.Columns(os.Stdout)), "\n"))
	}
	fmt.Fprintf(w, "\nOptions of perftest that are refused:\n%s\n", strings.Join(refused, "\n"))
}

// completePerftest offers the tests, and behind one the options that are not refused.
func completePerftest(_ *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	if len(args) == 0 {
		return perftest.Names(), cobra.ShellCompDirectiveNoFileComp
	}
	var offered []string
	for _, d := range perftest.Describe() {
		if d.Verdict == perftest.Refused {
			continue
		}
		for _, name := range []string{"-" + d.Letter, "--" + d.Long} {
			if name != "-" && strings.HasPrefix(name, typed) && typed != "" {
				offered = append(offered, name)
			}
		}
	}
	return offered, cobra.ShellCompDirectiveNoFileComp
}

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
	named, port, ok := stackspec.OnVerbs(stack, value("-d"), value("-i"))
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
		if n, err := verbs.GIDIndex(named.Name, port.Number, localAddr(host)); err == nil {
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
