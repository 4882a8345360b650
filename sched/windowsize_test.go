package sched

import "testing"

// A wide slice that measured the delay would ask for a window with wider slices
// still, without end: what measures is as long as in the narrow window.
func TestWideSlicesDoNotMeasureThemselves(t *testing.T) {
	var narrow, wide window
	narrow.init(&Config{}, true)
	wide.init(&Config{Adaptive: true}, true)
	if got, want := wide.longest(), adaptiveGain*narrow.longest(); got != want {
		t.Errorf("slices of %d bytes while nothing urgent is about, want %d", got, want)
	}
	narrow.probe, wide.probe = draining, draining
	if got, want := wide.longest(), narrow.longest(); got != want {
		t.Errorf("the delay is measured with %d bytes, want %d as in a narrow window", got, want)
	}
	wide.probe = noProbe
	wide.urgent()
	if wide.longest() != uint64(narrow.slice) || wide.bytes != narrow.bytes {
		t.Errorf("window %d, slice %d beside something urgent, want %d and %d", wide.bytes, wide.longest(), narrow.bytes, narrow.slice)
	}
}
