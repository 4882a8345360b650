package main

import (
	"context"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/rdmaperf/rdmaperf/internal/fulltest"
	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/softstack/wiretest/suite"
)

// TestConformWire aims the wire cases at our own stack, with and without what changes
// the expectations: no CRC asked for, and no RFC 7306.
func TestConformWire(t *testing.T) {
	for _, stack := range []string{"iwarp", "iwarp(nocrc,rfc5040)", "iwarp(checked,rfc7306)"} {
		t.Run(stack, func(t *testing.T) {
			if stack != "iwarp" {
				fulltest.Only(t, "every wire case again")
			}
			t.Parallel()
			port, _ := rpingServer(t, new(console), "--transport", stack)
			out, line, code := invoke(context.Background(), newConformCommand(), "--wire", "127.0.0.1:"+port,
				"--format", "jsonl")
			if code != reports.ExitOK {
				t.Errorf("exit code %d, %q\n%s", code, line, out)
			}
			if n := strings.Count(out, `"verdict":"pass"`); n < 50 {
				t.Errorf("%d cases passed:\n%s", n, out)
			}
		})
	}
}

func TestConformWireIsExplained(t *testing.T) {
	if out, line, code := invoke(context.Background(), newConformCommand(), "--explain",
		"w-55/read-source"); code != reports.ExitOK || !strings.Contains(out, "RFC 5040") {
		t.Errorf("explain: exit code %d, %q, %q", code, line, out)
	}
}

// targetServer runs serve --target and returns its control address.
func targetServer(t *testing.T, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var out, errs console
	done := make(chan error, 1)
	go func() {
		done <- invokeTo(ctx, newServeCommand(), &out, &errs,
			append([]string{"--target", "--bind", "127.0.0.1", "-p", "0"}, args...)...)
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("serve --target: %v", err)
		}
	})
	addr := regexp.MustCompile(`addr=(127\.0\.0\.1:\d+)`)
	for range 1000 {
		if m := addr.FindStringSubmatch(errs.String()); m != nil {
			return m[1]
		}
		select {
		case err := <-done:
			done <- err
			t.Fatalf("serve --target: %v", err)
		case <-time.After(10 * time.Millisecond):
		}
	}
	t.Fatalf("no address in %q", errs.String())
	return ""
}

// TestConformWireTarget: told what to do, our own stack passes every row, whatever it
// was told of CRC, placement and RFC 7306.
func TestConformWireTarget(t *testing.T) {
	for stack, unsupported := range map[string]int{"iwarp(nocrc,rfc5040)": 9, "sched+iwarp": 0} {
		t.Run(stack, func(t *testing.T) {
			if stack != "iwarp(nocrc,rfc5040)" { // which is expected to do least
				fulltest.Only(t, "every wire case again")
			}
			t.Parallel()
			addr := targetServer(t, "--transport", stack)
			// of a case; under the race detector one took 10 s
			out, line, code := invoke(context.Background(), newConformCommand(), "--wire", addr, "--format", "jsonl",
				"--case-timeout", "1m")
			if code != reports.ExitOK {
				t.Errorf("exit code %d, %q\n%s", code, line, out)
			}
			all, not := strings.Count(out, `"verdict"`), strings.Count(out, `"verdict":"unsupported"`)
			if all != len(suite.Catalogue()) || not != unsupported ||
				strings.Count(out, `"verdict":"pass"`) != all-not {
				t.Errorf("%d cases, %d unsupported, want %d:\n%s", all, not, unsupported, out)
			}
			if !strings.Contains(out, `"transport":"wire:`+stack+"@"+addr) {
				t.Errorf("the stack is not named: %.300s", out)
			}
		})
	}
}
