package main

import (
	"context"
	"encoding/json"
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
	if err := json.Unmarshal([]byte(out), &r); err != nil {
		t.Fatal(err)
	}
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

func TestDevicesKnowsItsFormats(t *testing.T) {
	if _, line, code := invoke(context.Background(), newDevicesCommand(), "--format",
		"yaml"); code != reports.ExitUsage || !strings.Contains(line, "text or json") {
		t.Errorf("exit code %d, %q, want %d and the formats", code, line, reports.ExitUsage)
	}
	if _, _, code := invoke(context.Background(), newDevicesCommand(), "mlx5_0"); code == 0 {
		t.Error("an argument is accepted")
	}
}
