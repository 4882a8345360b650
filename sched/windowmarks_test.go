package sched

import (
	"testing"
	"time"
)

// marked is a window of 64 KiB in slices of 16 KiB. apart: completions are local, and reads are marks.
func marked(apart bool) *window {
	var w window
	w.init(&Config{Window: 64 << 10, Slice: 16 << 10}, apart)
	w.apart = apart
	return &w
}

// A class sees only what is as urgent or more, and marks give it back in their order.
func TestWindowGivesBackWhatMarksProve(t *testing.T) {
	w := marked(false)
	under := func(when string, want ...uint64) {
		t.Helper()
		for c, n := range want {
			if w.under(c) != n {
				t.Errorf("%s: %d bytes of class %d and above, want %d", when, w.under(c), c, n)
			}
		}
	}
	w.issue(0, 1000)
	w.mark()
	w.issue(2, 300)
	w.issue(1, 70)
	w.mark()
	w.issue(2, 5)
	under("posted", 1375, 375, 305, 0)
	w.arrived()
	under("the first mark", 375, 375, 305, 0)
	w.arrived()
	under("the second mark", 5, 5, 5, 0)
	if w.out != 0 || w.since != 5 {
		t.Errorf("%d marks under way and %d bytes behind them, want 0 and 5", w.out, w.since)
	}
	w.empty()
	under("nothing on its way", 0, 0, 0)
	for range 3 * maxMarks { // places of marks are used again
		w.issue(1, 10)
		w.mark()
		w.arrived()
	}
	under("many marks later", 0, 0, 0)
}

// The window is taken to the last byte, and by one request of any length where it is empty.
func TestWindowIsTakenToTheLastByte(t *testing.T) {
	w := marked(false)
	if !w.room(0, 1<<30) {
		t.Error("an empty window has no room for one long request")
	}
	w.issue(0, 60<<10)
	if !w.room(0, 4<<10) || w.room(0, 4<<10+1) {
		t.Error("want room for 4 KiB and no byte more")
	}
	if !w.room(1, 64<<10) {
		t.Error("bulk keeps something urgent out")
	}
	w.share.group = &group{}
	w.share.under[0].Store(1 << 10) // of others
	if !w.room(0, 3<<10) || w.room(0, 3<<10+1) {
		t.Error("beside 1 KiB of others, want room for 3 KiB and no byte more")
	}
}

// A request is urgent for as long as something less urgent may be before it, posted and not proven to have arrived.
func TestLesserIsWhatMayStillBeOnItsWay(t *testing.T) {
	w := marked(true)
	is := func(when string, want bool) {
		t.Helper()
		if w.lesser(2) != want {
			t.Errorf("%s: less urgent bytes on their way: %v", when, !want)
		}
	}
	is("nothing posted", false)
	w.issue(2, 100)
	is("as urgent", false)
	w.issue(5, 100)
	is("more urgent", false)
	w.issue(1, 1)
	is("less urgent", true)
	w.hand()
	w.loose = true
	w.sent()
	is("handed over", true)
	w.mark()
	w.arrived()
	is("arrived", false)
	w.issue(2, 100)
	is("as urgent, later", false)
	w.issue(0, 1)
	is("less urgent, later", true)
}

// A mark is due when so many bytes went since the last, and only while there are places for marks of both kinds.
func TestMarksAreDueInTime(t *testing.T) {
	w := marked(false)
	if w.issue(0, 16<<10-1); w.due() {
		t.Error("due a byte early")
	}
	if w.issue(0, 1); !w.due() {
		t.Error("not due after a quarter of the window")
	}
	w.limit = 2
	for i, note := range []func(){w.mark, w.hand} {
		if !w.due() {
			t.Errorf("not due with %d of 2 places taken", i)
		}
		note()
		w.issue(0, 16<<10)
	}
	if w.due() {
		t.Error("due without a place")
	}
	w.sent()
	if !w.due() {
		t.Error("not due with a place again")
	}
}

// A probe that waits for the window to run empty marks its slice, however short, and no other.
func TestAProbeMarksOneSlice(t *testing.T) {
	w := marked(false)
	w.probe = draining
	w.issue(0, 1)
	if !w.due() {
		t.Error("the slice that is to run alone has no mark")
	}
	w.mark()
	if w.probe != alone || !w.marks[0].alone {
		t.Error("what ran alone is not taken for it")
	}
	w.probe = draining
	w.issue(0, 1)
	if w.due() {
		t.Error("a second mark while the first is under way")
	}
	w.mark()
	if w.probe != draining || w.marks[1].alone {
		t.Error("what did not run alone is taken for it")
	}
}

// A loose window takes local completions for room, a tight one does not, and neither takes back what it knew.
func TestOnlyALooseWindowGoesByWhatWasSent(t *testing.T) {
	for _, loose := range []bool{false, true} {
		w := marked(true)
		w.loose = loose
		w.issue(0, 1000)
		w.hand()
		w.issue(1, 500)
		w.hand()
		if w.since != 0 || w.hOut != 2 {
			t.Errorf("%d bytes behind the last of %d, want none behind 2", w.since, w.hOut)
		}
		for i, left := range []uint64{500, 0} {
			if w.sent(); !loose {
				left = 1500
			}
			if w.under(0) != left || w.proven[0] != 0 {
				t.Errorf("loose %v: %d bytes under way after %d, want %d, and %d proven", loose, w.under(0), i+1, left,
					w.proven[0])
			}
		}
		w.seen = w.issued
		w.issue(0, 7)
		w.handed[w.hFirst], w.hOut = [Priorities]uint64{}, 1 // of before what was seen
		if w.sent(); w.under(0) != 7 {
			t.Errorf("loose %v: %d bytes under way, want 7", loose, w.under(0))
		}
	}
}

// A read proves arrival when the last that did so was long enough ago.
func TestALooseWindowWantsProofNowAndThen(t *testing.T) {
	w := marked(true)
	for ago, want := range map[time.Duration]bool{proveEvery / 2: false, 2 * proveEvery: true} {
		w.askAt = now() - int64(ago)
		if w.hand(); w.want != want {
			t.Errorf("%v after the last proof: wanted %v", ago, w.want)
		}
		if w.sent(); w.asks() != true {
			t.Error("a tight window whose marks are reads does not ask")
		}
		if w.loose = true; w.asks() != want {
			t.Errorf("%v after the last proof a loose window asks: %v", ago, !want)
		}
		w.loose = false
	}
	if w.apart = false; w.asks() {
		t.Error("reads are asked for where requests are marks themselves")
	}
}

// The rate is that of what arrived since the mark; a better one counts at once and is forgotten slowly.
func TestRateIsTheBestOfLate(t *testing.T) {
	for loose, forget := range map[bool]float64{false: 1. / 64, true: 1. / 4} {
		w := marked(true)
		w.fixed = 0
		w.measure(&mark{issued: [Priorities]uint64{5000}, seen: 1000, from: 100, loose: loose}, 1100)
		if w.rate != 4 {
			t.Errorf("%v bytes a nanosecond, want 4000 in 1000", w.rate)
		}
		w.measure(&mark{issued: [Priorities]uint64{6000}, seen: 5000, from: 1100, loose: loose}, 2100)
		if w.rate != 4*(1-forget) || w.last != 2100 {
			t.Errorf("loose %v: %v bytes a nanosecond, want 4 without %v of it", loose, w.rate, forget)
		}
		if w.measure(&mark{issued: [Priorities]uint64{16_000}, seen: 6000, from: 2100, loose: loose},
			3100); w.rate != 10 {
			t.Errorf("%v bytes a nanosecond, want the better one", w.rate)
		}
	}
	w := marked(true)
	if w.measure(&mark{issued: [Priorities]uint64{10}, from: 5, seen: 0}, 5); w.rate != 10 {
		t.Errorf("%v bytes a nanosecond of what arrived in no time, want one nanosecond", w.rate)
	}
}

// Of the last four probes the least delay counts: a fifth replaces the first.
func TestTheLeastDelayOfFourProbesCounts(t *testing.T) {
	var w window
	w.init(&Config{Steady: true}, false)
	w.rate = 1
	for i, c := range []struct{ delay, window int64 }{{100 << 10, 200 << 10}, {300 << 10, 200 << 10},
		{200 << 10, 200 << 10}, {200 << 10, 200 << 10}, {150 << 10, 300 << 10 &^ (4*evenly - 1)},
		{1 << 30, 300 << 10 &^ (4*evenly - 1)}} {
		w.measure(&mark{alone: true, at: 1 << 20}, 1<<20+c.delay)
		if want := c.window &^ (4*evenly - 1); int64(w.bytes) != want || w.probe != noProbe || w.age != 0 {
			t.Errorf("probe %d of %d ns: window %d, want %d", i, c.delay, w.bytes, want)
		}
	}
	if w.measure(&mark{alone: true, at: 7}, 7); w.bytes != leastWindow {
		t.Errorf("a delay of nothing: window %d, want the least", w.bytes)
	}
}

// The window follows the rate every tuneEvery marks, not at each.
func TestTheWindowFollowsTheRateNowAndThen(t *testing.T) {
	var w window
	w.init(&Config{Steady: true}, false)
	w.rate = 1
	w.measure(&mark{alone: true, at: 7}, 7+64<<10)
	was := w.bytes
	for i := 1; i <= 2*tuneEvery; i++ {
		w.measure(&mark{issued: [Priorities]uint64{uint64(10 * i)}, seen: uint64(10*i - 10), from: int64(i)},
			int64(i)+1)
		if want := i >= tuneEvery; (w.bytes != was) != want {
			t.Fatalf("mark %d: window %d, before it was %d", i, w.bytes, was)
		}
	}
	if w.age != 2*tuneEvery {
		t.Errorf("%d marks since the last probe, want %d", w.age, 2*tuneEvery)
	}
}

// A window that is tight again counts from what was proven.
func TestATightWindowCountsFromWhatWasProven(t *testing.T) {
	w := sized(Config{}, true, 2*looseRate)
	w.issue(0, 1000)
	w.mark()
	w.arrived()
	w.rate = 2 * looseRate // as before that sample
	w.resize()
	w.issue(0, 700)
	w.hand()
	w.sent()
	if !w.loose || w.under(0) != 0 {
		t.Fatalf("loose %v, %d bytes under way, want none", w.loose, w.under(0))
	}
	w.urgent()
	if w.loose || w.under(0) != 700 || w.since != 700 || w.want {
		t.Errorf("loose %v, %d bytes under way and %d behind the last mark, want 700 and 700", w.loose, w.under(0),
			w.since)
	}
}

// A window is wide where that is wider, and half of it lies between marks that are reads.
func TestWideIsWiderThanNarrow(t *testing.T) {
	const wide = 8 * wideParts * evenly
	rate := float64(wide) / float64(wideTime)
	for tuned, want := range map[int]bool{wide - 4*evenly: true, wide: false, 2 * wide: false} {
		var w window
		w.init(&Config{}, true)
		w.apart, w.tuned, w.rate = true, tuned, rate*1.0001
		w.resize()
		if w.wide != want || w.bytes != max(tuned, wide) {
			t.Errorf("narrow %d, wide %d: window %d, wide %v", tuned, wide, w.bytes, w.wide)
		}
		if w.rarely != w.bytes/2 {
			t.Errorf("%d bytes between two marks, want half of %d", w.rarely, w.bytes)
		}
	}
}

// The first probe comes early, the next ones seldom: a window that is full then runs empty.
func TestTheFirstProbeComesEarly(t *testing.T) {
	var w window
	w.init(&Config{Steady: true}, false)
	if w.bytes != 2*leastWindow {
		t.Errorf("before anything is known the window is %d, want twice the least", w.bytes)
	}
	for _, every := range []int{probeFirst, probeEvery} {
		for i := 1; i <= every; i++ {
			w.issue(0, uint64(w.bytes))
			if w.room(0, 1); w.probe != noProbe {
				t.Fatalf("a probe behind %d marks, want it behind %d", i-1, every)
			}
			w.mark()
			w.arrived()
		}
		w.issue(0, uint64(w.bytes))
		if w.room(0, 1); w.probe != draining {
			t.Fatalf("no probe behind %d marks", every)
		}
		w.empty()
		w.issue(0, 1)
		w.mark()
		w.arrived()
	}
}
