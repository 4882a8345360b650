package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func doc(t *testing.T, awake string, wakeup, tcp, fused float64) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "d.json")
	text := fmt.Sprintf(`{"environment":{"awake":%q,"idle_state":"idle state C6 (133 us to leave)","wakeup":{"p50":%v,"p99":%v}},"results":[
{"stack":"grpc(tcp)","latency":{"p50":%v}},{"stack":"grpc(fused)+iwarp","latency":{"p50":%v}}]}`, awake, wakeup,
		2*wakeup, tcp, fused)
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// Both ways stand beside each other; ratios are those of a round.
func TestBothWaysAreShown(t *testing.T) {
	files := []string{
		doc(t, "", 24e3, 180e3, 18e3), doc(t, "threads", 5e3, 60e3, 30e3),
		doc(t, "", 26e3, 160e3, 20e3), doc(t, "threads", 7e3, 66e3, 33e3),
	}
	var out bytes.Buffer
	if err := run(files, &out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"| `grpc(tcp)` | 170.00 us | 9.00x (8.00 to 10.00) | 63.00 us | 2.00x (2.00 to 2.00) |",
		"| `grpc(fused)+iwarp` | 19.00 us |  | 31.50 us |  |",
		"| wake-up of a thread, p50; p99 | 25.00 us; 50.00 us | | 6.00 us; 12.00 us | |",
		"idle state C6 (133 us to leave). Medians of 2 rounds.",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
}

// One way alone is no comparison.
func TestOneWayIsNotEnough(t *testing.T) {
	var out bytes.Buffer
	if err := run([]string{doc(t, "", 24e3, 180e3, 18e3)}, &out); err == nil || out.Len() > 0 {
		t.Errorf("%v, %s", err, out.String())
	}
	if err := run(nil, &out); err == nil {
		t.Error("without files")
	}
}
