package main

import (
	"context"
	"strings"
	"testing"

	"github.com/rdmaperf/rdmaperf/reports"
)

// TestConformWire aims the wire cases at our own stack, with and without what changes
// the expectations: no CRC asked for, and no RFC 7306.
func TestConformWire(t *testing.T) {
	for _, stack := range []string{"iwarp", "iwarp(nocrc,rfc5040)", "iwarp(checked,rfc7306)"} {
		t.Run(stack, func(t *testing.T) {
			t.Parallel()
			port, _ := rpingServer(t, new(console), "--transport", stack)
			out, line, code := invoke(context.Background(), newConformCommand(), "--wire", "127.0.0.1:"+port, "--format", "jsonl")
			if code != reports.ExitOK {
				t.Errorf("exit code %d, %q\n%s", code, line, out)
			}
			if n := strings.Count(out, `"verdict":"pass"`); n < 50 {
				t.Errorf("%d cases passed:\n%s", n, out)
			}
		})
	}
}

func TestConformWireUsage(t *testing.T) {
	for _, args := range [][]string{{"--wire", "nowhere"}, {"--wire", ":7174"}, {"--wire", "127.0.0.1:1", "--transport", "mem"}, {"--wire", "127.0.0.1:1", "--only", "imm"}} {
		if _, line, code := invoke(context.Background(), newConformCommand(), args...); code != reports.ExitUsage {
			t.Errorf("%v: exit code %d, %q", args, code, line)
		}
	}
	if _, line, code := invoke(context.Background(), newConformCommand(), "--wire", "127.0.0.1:1"); code != reports.ExitNotRun {
		t.Errorf("nobody there: exit code %d, %q", code, line)
	}
	if out, line, code := invoke(context.Background(), newConformCommand(), "--explain", "w-55/read-source"); code != reports.ExitOK || !strings.Contains(out, "RFC 5040") {
		t.Errorf("explain: exit code %d, %q, %q", code, line, out)
	}
}
