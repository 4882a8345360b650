// Package fulltest keeps tests that take long out of `go test ./...`.
package fulltest

import (
	"os"
	"testing"
)

// Only skips a test unless RDMAPERF_TEST=full, as ci/test sets it. What it is about says why the test takes long.
func Only(t testing.TB, about string) {
	t.Helper()
	if os.Getenv("RDMAPERF_TEST") != "full" {
		t.Skip(about + ": RDMAPERF_TEST=full runs it")
	}
}
