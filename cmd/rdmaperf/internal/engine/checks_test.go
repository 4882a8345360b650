package engine

import "testing"

// A worker whose polls take long checks the clock after fewer of them, and after many
// again when they have become short. Time that somebody else had the CPU says nothing.
func TestAWorkerLooksMoreOftenWherePollsTakeLong(t *testing.T) {
	var w Worker
	at := int64(1)
	polls := func(n int, poll int64) {
		for range n {
			at += (SpinCheck >> w.checkShift) * poll
			w.adaptChecks(at, false)
		}
	}
	w.adaptChecks(at, true)
	if polls(10, 60); w.checkShift != 0 {
		t.Errorf("polls of 60 ns: a check after %d of them, want %d", SpinCheck>>w.checkShift, SpinCheck)
	}
	if polls(10, 2000); (SpinCheck>>w.checkShift)*2000 > 3*yieldAfter {
		t.Errorf("polls of 2 us: a check after %d of them", SpinCheck>>w.checkShift)
	}
	if polls(10, 1_000_000); w.checkShift != mostChecks {
		t.Errorf("polls of 1 ms: a check after %d of them, want %d", SpinCheck>>w.checkShift, SpinCheck>>mostChecks)
	}
	if polls(10, 60); w.checkShift != 0 {
		t.Errorf("polls of 60 ns again: a check after %d of them, want %d", SpinCheck>>w.checkShift, SpinCheck)
	}
	w.Yielder.last = w.checked
	if w.adaptChecks(at+10_000_000, false); w.checkShift != 0 {
		t.Errorf("behind a yield of 10 ms: a check after %d polls, want %d", SpinCheck>>w.checkShift, SpinCheck)
	}
}
