package main

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/devices"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/stackspec"
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
