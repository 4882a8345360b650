package devices

import (
	"math"
	"testing"
)

func TestAPathIsExpectedToCarryTheLeastOfItsLinkAndItsSlot(t *testing.T) {
	for _, c := range []struct {
		name string
		d    Device
		p    Port
		want float64 // GB/s
	}{
		{"RoCE of 100 Gb/s", Device{}, Port{Rate: "100 Gb/sec (4X EDR)", MTU: 4096}, 12.255},
		{"RoCE with small packets", Device{}, Port{Rate: "100 Gb/sec (4X EDR)", MTU: 1024}, 11.573},
		{"no MTU is a small one", Device{}, Port{Rate: "100 Gb/sec (4X EDR)"}, 11.573},
		{"InfiniBand", Device{}, Port{Rate: "200 Gb/sec (4X HDR)", MTU: 4096, LinkLayer: "InfiniBand"}, 24.842},
		{"a fast slot", Device{PCIeSpeed: "16.0 GT/s PCIe", PCIeWidth: 16}, Port{Rate: "100 Gb/sec", MTU: 4096}, 12.255},
		{"a slot of half the lanes", Device{PCIeSpeed: "8.0 GT/s PCIe", PCIeWidth: 8}, Port{Rate: "100 Gb/sec", MTU: 4096},
			7.202},
		{"an old slot", Device{PCIeSpeed: "5.0 GT/s PCIe", PCIeWidth: 8}, Port{Rate: "100 Gb/sec", MTU: 4096}, 3.657},
		{"software", Device{Software: true}, Port{Rate: "100 Gb/sec", MTU: 4096}, 0},
		{"iWARP", Device{NodeType: "RNIC"}, Port{Rate: "100 Gb/sec", MTU: 4096}, 0},
		{"nothing", Device{}, Port{}, 0},
	} {
		if got := c.d.Expected(&c.p) / 1e9; math.Abs(got-c.want) > 0.001 {
			t.Errorf("%s: %.3f GB/s, want %.3f", c.name, got, c.want)
		}
	}
}
