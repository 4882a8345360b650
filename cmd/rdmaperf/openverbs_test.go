package main

import (
	"context"
	"strings"
	"testing"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/stackspec"
	"github.com/rdmaperf/rdmaperf/reports"
)

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
