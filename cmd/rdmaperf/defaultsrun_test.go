package main

import (
	"strings"
	"testing"
)

// A mistake that nobody typed says where it stands.
func TestErrorsNameTheDefaultThatTheySpeakOf(t *testing.T) {
	t.Setenv("RDMAPERF_RUN_DURATION", "soon")
	t.Setenv("RDMAPERF_RUN_QP", "2")
	r := rdmaperf(t, "run", "--transport", "mem")
	if r.code != 2 || !strings.HasPrefix(r.stderr,
		"rdmaperf: default --duration soon, from RDMAPERF_RUN_DURATION\nrdmaperf: ") ||
		strings.Contains(r.stderr, "--qp") {
		t.Errorf("exit %d: %s", r.code, r.stderr)
	}
}
