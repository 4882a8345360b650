package main

import (
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
	text := runs(t, "devices").stdout
	var r devices.Report
	must(t, json.Unmarshal([]byte(runs(t, "devices", "--format", "json").stdout), &r))
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
		fails(t, reports.ExitNotRun, "RDMA device", strings.Fields(cmd)...)
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
		r := runs(t, append([]string{"lite", "--nodes", "3", "--transport", "mem"}, strings.Fields(c.args)...)...)
		contains(t, r.stdout, c.want, "the same as on a single machine", "of them use LITE")
	}
}
