package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/register"
	"github.com/rdmaperf/rdmaperf/reports"
)

// Registrations are measured with real page pinning where no device is named, and with
// a device where one is; the page has the curves.
func TestRunRegister(t *testing.T) {
	dir := t.TempDir()
	for _, c := range []struct {
		stack, label string
		args         []string
	}{
		{"pin", reports.LabelSoft, nil},
		{"iwarp(crc)", reports.LabelSoft, []string{"--transport", "iwarp"}},
		{"regcache+mem", reports.LabelMem, []string{"--transport", "regcache+mem"}},
	} {
		out := filepath.Join(dir, c.label+c.stack[:3])
		r := rdmaperf(t, append([]string{"run", "--workload", "register", "-s", "8K,64K", "-D", "2ms",
			"--register-threads", "1,2", "--working-set", "2,8", "--capacity", "4", "--output", out}, c.args...)...)
		if c.stack == "pin" && r.code == reports.ExitNotRun {
			t.Log("skipped: no io_uring here")
			continue
		}
		if r.code != 0 {
			t.Fatalf("%s: exit code %d\n%s%s", c.stack, r.code, r.stdout, r.stderr)
		}
		d := documentOf(t, filepath.Join(out, "result.json"))
		seen := map[string]bool{}
		for _, res := range d.Results {
			x := register.Of(&res)
			if x == nil || res.Stack != c.stack || res.Label != c.label || res.Operations == 0 {
				t.Fatalf("%s: %+v, detail %+v", c.stack, res, x)
			}
			seen[res.Op+" "+x.Arm+" "+x.Offload] = true
		}
		for _, want := range []string{"repeated none hop", "repeated prereg+lazy none", "new cache none",
			"new prereg none", "random cache none", "overlapping none none", "set cache none", "threads none none",
			"replaced cache none"} {
			if !seen[want] {
				t.Errorf("%s: no point %q among %v", c.stack, want, seen)
			}
		}
		if want := "odp unsupported: " + c.stack +
			" declares no on-demand paging"; !strings.Contains(strings.Join(strings.Fields(r.stdout), " "), want) {
			t.Errorf("%s: output lacks %q\n%s", c.stack, want, r.stdout)
		}
		page := need(os.ReadFile(filepath.Join(out, "report.html")))(t)
		contains(t, string(page), "Registration repeated: register p50 by size", "Registration set: set hits",
			"Registration new: unmap p50", "Registration threads: each")
	}
}
