package reports

import (
	"math"
	"testing"

	"github.com/rdmaperf/rdmaperf/reports/view"
)

func TestLabelsSayTheUnit(t *testing.T) {
	for want, got := range map[string]string{
		"850 ns": view.NsLabel(850), "3.57 µs": view.NsLabel(3566), "1 µs": view.NsLabel(999.7),
		"64.8 ms": view.NsLabel(64_836_570), "2 s": view.NsLabel(2e9), "-": view.NsLabel(math.NaN()),
		"64 B": SizeLabel(64), "1 KiB": SizeLabel(1024), "1000 B": SizeLabel(1000), "16 MiB": SizeLabel(16 << 20),
		"1.5 M op/s": view.RateLabel(1.5e6), "20 k op/s": view.RateLabel(20_000), "500 op/s": view.RateLabel(500),
		"953 MiB/s": view.BandwidthLabel(999_292_928),
	} {
		if got != want {
			t.Errorf("label %q, want %q", got, want)
		}
	}
}
