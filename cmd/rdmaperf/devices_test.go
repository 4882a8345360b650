package main

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/devices"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/stackspec"
	"github.com/rdmaperf/rdmaperf/reports"
)

// The command answers on every machine, with devices or with the reason.
func TestDevicesAlwaysAnswers(t *testing.T) {
	text, line, code := invoke(context.Background(), newDevicesCommand())
	if code != 0 {
		t.Fatalf("exit code %d: %s", code, line)
	}
	out, line, code := invoke(context.Background(), newDevicesCommand(), "--format", "json")
	if code != 0 {
		t.Fatalf("exit code %d: %s", code, line)
	}
	var r devices.Report
	must(t, json.Unmarshal([]byte(out), &r))
	if (len(r.Devices) == 0) != strings.HasPrefix(text, "no RDMA devices here: ") ||
		(len(r.Devices) == 0) != (r.Reason != "") {
		t.Errorf("%d devices, reason %q, text:\n%s", len(r.Devices), r.Reason, text)
	}
	var soft []string
	for _, s := range r.Soft {
		soft = append(soft, s.Transport)
	}
	want := strings.Replace(stackspec.Names(), "verbs, ", "", 1)
	if got := strings.Join(soft, ", "); got != want {
		t.Errorf("soft transports = %s, want %s", got, want)
	}
}

func TestOpeningVerbsWithoutADeviceIsNotRun(t *testing.T) {
	if devices, err := stackspec.Devices(); err == nil && len(devices) > 0 {
		t.Skip("there is an RDMA device here")
	}
	for _, cmd := range []string{"conform --transport verbs", "conform -d rxe0",
		"rping -c -a 127.0.0.1 --transport verbs"} {
		args := strings.Fields(cmd)
		root := newConformCommand()
		if args[0] == "rping" {
			root = newRpingCommand()
		}
		if _, line, code := invoke(context.Background(), root, args[1:]...); code != reports.ExitNotRun ||
			!strings.Contains(line, "RDMA device") {
			t.Errorf("%s: exit %d, %q", cmd, code, line)
		}
	}
	if got, err := stackspec.WithRDMACM("verbs:rxe0"); got != "verbs(cm):rxe0" || err != nil {
		t.Errorf("rping connects by %q, %v", got, err)
	}
}

// Every application finds on local nodes what a single machine does, and says so.
func TestLiteApplicationsAgreeWithASingleMachine(t *testing.T) {
	edges := filepath.Join(t.TempDir(), "edges")
	must(t, os.WriteFile(edges, []byte("a b\nb c\nc a\na c\n"), 0o600))
	for _, c := range []struct{ args, want string }{
		{"log --records 50 --size 40", "150 records"},
		{"wordcount root.go main.go", "files taken by each node"},
		{"pagerank --iterations 5 --edges " + edges, "3 vertices, 4 edges"},
		{"dsm --pages 4 --accesses 100 --writes 0.5", "pages fetched"},
	} {
		r := rdmaperf(t, append([]string{"lite", "--nodes", "3", "--transport", "mem"}, strings.Fields(c.args)...)...)
		if r.code != 0 || !strings.Contains(r.stdout, c.want) ||
			!strings.Contains(r.stdout, "the same as on a single machine") ||
			!strings.Contains(r.stdout, "of them use LITE") {
			t.Errorf("lite %s: exit code %d\n%s%s", c.args, r.code, r.stdout, r.stderr)
		}
	}
}
