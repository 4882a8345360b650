// Package fulltest keeps tests that take long out of `go test ./...`.
package fulltest

import (
	"os"
	"testing"
)

// Asked is whether tests that take long run, too: RDMAPERF_TEST=full, as ci/test sets it.
func Asked() bool { return os.Getenv("RDMAPERF_TEST") == "full" || Everything() }

// Everything is whether tests run that take longer than a change may wait: RDMAPERF_TEST=everything (nightly).
func Everything() bool { return os.Getenv("RDMAPERF_TEST") == "everything" }

// Only skips a test unless they are asked for. What it is about says why the test takes long.
func Only(t testing.TB, about string) {
	t.Helper()
	if !Asked() {
		t.Skip(about + ": RDMAPERF_TEST=full runs it")
	}
}
