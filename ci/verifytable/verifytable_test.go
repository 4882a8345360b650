package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func doc(t *testing.T, way string, p50, bw float64) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "d.json")
	text := fmt.Sprintf(`{"results":[
{"workload":"latency","op":"send","stack":"tcp","size_bytes":64,"latency":{"p50":%v},"verification":{"mode":%q}},
{"workload":"throughput","op":"write","stack":"iwarp(crc)","size_bytes":65536,"throughput":{"bytes_per_second":%v},"verification":{"mode":%q}}]}`, p50, way, bw, way)
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return way + "=" + name
}

// Ratios are those of a round, and what was not measured is said.
func TestCostsAreShown(t *testing.T) {
	files := []string{
		doc(t, "none", 4000, 2<<30), doc(t, "sample", 4400, 1<<30), doc(t, "all", 4800, 1<<29),
		doc(t, "none", 5000, 4<<30), doc(t, "sample", 5000, 3<<30), doc(t, "all", 5500, 1<<30),
	}
	var out bytes.Buffer
	if err := run(files, &out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"| latency send 64 B, `tcp` | 4.5 µs | 1.05x (1.00 to 1.10) | 1.15x (1.10 to 1.20) |",
		"| throughput write 64 KiB, `iwarp(crc)` | 3072 MiB/s | 0.62x (0.50 to 0.75) | 0.25x (0.25 to 0.25) |",
		"medians over 2 rounds",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
	wrong := "all=" + strings.TrimPrefix(files[0], "none=")
	for _, args := range [][]string{nil, {"x"}, files[:2], files[:4], {files[0], files[1], wrong}, {"none=/no/such"}} {
		if err := run(args, &out); err == nil {
			t.Errorf("%q is fine", args)
		}
	}
}
