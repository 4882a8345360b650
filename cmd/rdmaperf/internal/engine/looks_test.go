package engine

import "testing"

// A worker whose polls take long looks around after fewer of them, and after many
// again when they have become short. Time that somebody else had the CPU says nothing.
func TestAWorkerLooksMoreOftenWherePollsTakeLong(t *testing.T) {
	var w Worker
	at := int64(1)
	looks := func(n int, poll int64) {
		for range n {
			at += (SpinLook >> w.lookShift) * poll
			w.adaptLooks(at, false)
		}
	}
	w.adaptLooks(at, true)
	if looks(10, 60); w.lookShift != 0 {
		t.Errorf("polls of 60 ns: a look after %d of them, want %d", SpinLook>>w.lookShift, SpinLook)
	}
	if looks(10, 2000); (SpinLook>>w.lookShift)*2000 > 3*yieldAfter {
		t.Errorf("polls of 2 us: a look after %d of them", SpinLook>>w.lookShift)
	}
	if looks(10, 1_000_000); w.lookShift != mostLooks {
		t.Errorf("polls of 1 ms: a look after %d of them, want %d", SpinLook>>w.lookShift, SpinLook>>mostLooks)
	}
	if looks(10, 60); w.lookShift != 0 {
		t.Errorf("polls of 60 ns again: a look after %d of them, want %d", SpinLook>>w.lookShift, SpinLook)
	}
	w.Yielder.last = w.looked
	if w.adaptLooks(at+10_000_000, false); w.lookShift != 0 {
		t.Errorf("behind a yield of 10 ms: a look after %d polls, want %d", SpinLook>>w.lookShift, SpinLook)
	}
}
