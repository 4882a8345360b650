package engine

import "testing"

// A worker whose polls take long looks around after fewer of them, and after many
// again when they have become short. Time that somebody else had the CPU says nothing.
func TestAWorkerLooksMoreOftenWherePollsTakeLong(t *testing.T) {
	var w Worker
	at := int64(1)
	looks := func(n int, poll int64) {
		for range n {
			at += (SpinLook >> w.haste) * poll
			w.hasten(at, false)
		}
	}
	w.hasten(at, true)
	if looks(10, 60); w.haste != 0 {
		t.Errorf("polls of 60 ns: a look after %d of them, want %d", SpinLook>>w.haste, SpinLook)
	}
	if looks(10, 2000); (SpinLook>>w.haste)*2000 > 3*leastPatience {
		t.Errorf("polls of 2 us: a look after %d of them", SpinLook>>w.haste)
	}
	if looks(10, 1_000_000); w.haste != mostHaste {
		t.Errorf("polls of 1 ms: a look after %d of them, want %d", SpinLook>>w.haste, SpinLook>>mostHaste)
	}
	if looks(10, 60); w.haste != 0 {
		t.Errorf("polls of 60 ns again: a look after %d of them, want %d", SpinLook>>w.haste, SpinLook)
	}
	w.Yielder.last = w.looked
	if w.hasten(at+10_000_000, false); w.haste != 0 {
		t.Errorf("behind a yield of 10 ms: a look after %d polls, want %d", SpinLook>>w.haste, SpinLook)
	}
}
