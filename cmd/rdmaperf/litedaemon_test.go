package main

import (
	"path/filepath"
	"strings"
	"testing"
)

// LITE's calls run beside their peers and through daemons, and a daemon has a client for
// each user of sharing; what cannot be one says so.
func TestCallsThroughDaemonsAndPeers(t *testing.T) {
	got := runs(t, "run", "--transport",
		"lite+iwarp,lite(rpc=send)+iwarp,lite(rpc=write)+iwarp,lite(daemon)+iwarp,lite(daemon,cross,k=1)+iwarp",
		"--workload", "rpc", "-s", "64,10K", "-n", "30")
	contains(t, got.stdout, "lite(rpc=send)+iwarp", "lite(rpc=write)+iwarp", "lite(daemon,k=4)+iwarp",
		"lite(daemon,cross,k=1)+iwarp", "side by side: rpc call")
	got = runs(t, "run", "--transport", "lite+iwarp,lite(daemon)+iwarp", "--workload", "sharing", "--users", "1,3",
		"-n", "60")
	contains(t, got.stdout, "lite(daemon,k=4)+iwarp")
	for _, args := range []string{"", "--socket s --listen nonsense", "--socket s --place-memory much",
		"--socket s --for -1s", "--socket s --places 0"} {
		args = strings.Replace(args, "--socket s", "--socket "+filepath.Join(t.TempDir(), "s"), 1)
		if got := rdmaperf(t, append([]string{"lite", "daemon"}, strings.Fields(args)...)...); got.code == 0 ||
			strings.TrimSpace(got.stderr) == "" {
			t.Errorf("lite daemon %s: exit %d: %s", args, got.code, got.stderr)
		}
	}
}

// Sessions go through daemons as calls do, with the crossing hidden and not, and every byte is
// compared.
func TestSessionsThroughDaemons(t *testing.T) {
	d := measure(t, "run", "--transport", "lite+iwarp,lite(daemon)+iwarp,lite(daemon,cross)+iwarp", "--workload",
		"latency,throughput", "--op", "write,read", "-s", "64,4K", "-n", "40", "--timeout", "60s")
	n := map[string]int{}
	for _, res := range d.Results {
		if !res.Verified || res.Operations != 40 {
			t.Errorf("%s %s %s: %d operations, verified %v", res.Stack, res.Workload, res.Op, res.Operations,
				res.Verified)
		}
		n[res.Stack]++
	}
	if len(n) != 3 || n["lite(daemon,k=4)+iwarp(crc)"] != 8 || n["lite(daemon,cross,k=4)+iwarp(crc)"] != 8 {
		t.Errorf("%v", n)
	}
}
