package sched

import (
	"testing"
	"testing/synctest"
	"time"
)

// between is what 0.064 bytes a nanosecond carry in 48 ms, in eight parts of whole pages.
const between = 93 * 8 * 4096

// sized is a window where completions are local, of a path of rate bytes a nanosecond.
func sized(cfg Config, apart bool, rate float64) *window {
	var w window
	w.init(&cfg, true)
	w.apart, w.rate = apart, rate
	w.resize()
	return &w
}

// While nothing urgent is about, the window is what is sent in a set time, within bounds.
func TestWindowIsWideWhileNothingUrgentIsAbout(t *testing.T) {
	for _, c := range []struct {
		name          string
		cfg           Config
		rate          float64 // bytes a nanosecond
		window, slice int
	}{
		{"before anything is known", Config{}, 0, startWindow, startWindow / 4},
		{"a slow link", Config{}, 0.005, startWindow, startWindow / 4},
		{"a link in between", Config{}, 0.064, between, between / 4},
		{"a fast link", Config{}, 100, wideMost, wideMost / 4},
		{"steady", Config{Steady: true}, 100, startWindow, startWindow / 4},
		{"configured", Config{Window: 1 << 20, Slice: 16 << 10}, 100, 1 << 20, 16 << 10},
		{"configured, adaptive", Config{Window: 1 << 20, Slice: 16 << 10, Adaptive: true}, 100, wideMost, wideMost / 4},
		{"configured wider, adaptive", Config{Window: 64 << 20, Slice: 8 << 20, Adaptive: true}, 100, 64 << 20,
			8 << 20},
	} {
		var narrow window
		narrow.init(&c.cfg, true)
		w := sized(c.cfg, true, c.rate)
		if w.bytes != c.window || w.longest() != uint64(c.slice) {
			t.Errorf("%s: window %d, slice %d, want %d and %d", c.name, w.bytes, w.longest(), c.window, c.slice)
		}
		w.urgent()
		if w.bytes != narrow.bytes || w.longest() != narrow.longest() {
			t.Errorf("%s: window %d, slice %d beside something urgent, want %d and %d", c.name, w.bytes, w.longest(),
				narrow.bytes, narrow.longest())
		}
		step := func(after time.Duration) int {
			w.wideAt -= int64(after) // as if so much time had gone by
			w.issue(0, 1)
			w.mark()
			w.first, w.out = 0, 0
			return w.bytes
		}
		if got := step(0); got != narrow.bytes {
			t.Errorf("%s: window %d at the first mark, want %d", c.name, got, narrow.bytes)
		}
		if got := step(wideAfter / 2); got != narrow.bytes {
			t.Errorf("%s: window %d too early, want %d", c.name, got, narrow.bytes)
		}
		if got := step(wideAfter); got != c.window {
			t.Errorf("%s: window %d at last, want %d", c.name, got, c.window)
		}
	}
}

// Where marks are requests, a wide window has one a part; reads as marks cost more, and are two.
func TestWideWindowRefillsInPartsWhereMarksAreFree(t *testing.T) {
	for _, apart := range []bool{false, true} {
		w := sized(Config{}, apart, 0.064)
		slice, every := between/8, between/8
		if apart {
			slice, every = between/4, between/2
		}
		if w.bytes != between || w.slice != slice || w.every != every {
			t.Errorf("marks apart %v: window %d, slice %d, a mark in %d, want %d, %d and %d", apart, w.bytes, w.slice,
				w.every, between, slice, every)
		}
	}
}

// A wide window that ran dry grows by quarters, up to twice, unless completions are local.
func TestWideWindowThatRanDryGrows(t *testing.T) {
	for _, apart := range []bool{false, true} {
		var w window
		w.init(&Config{}, apart)
		narrow := w.bytes
		w.apart = apart
		w.ranDry()
		w.rate = 0.064
		w.resize()
		for k := range 6 {
			want := between
			if !apart {
				want = min(int(0.064*float64(wideTime))*min(4+k, 8)/4, wideMost) &^ (8*4096 - 1)
			}
			if w.bytes != want {
				t.Errorf("marks apart %v: window %d when it ran dry %d times, want %d", apart, w.bytes, k, want)
			}
			w.ranDry()
		}
		w.urgent()
		w.ranDry()
		if w.bytes != narrow {
			t.Errorf("marks apart %v: window %d beside something urgent, want %d", apart, w.bytes, narrow)
		}
		w.busy = false
		w.resize()
		if w.bytes != between {
			t.Errorf("marks apart %v: window %d after something urgent, want %d", apart, w.bytes, between)
		}
	}
}

// Only a path that empties its sockets soon may have a window that proves nothing, and only while the window is wide.
func TestWindowIsLooseOnAFastPathWithoutUrgency(t *testing.T) {
	for _, c := range []struct {
		name  string
		cfg   Config
		apart bool
		rate  float64 // bytes a nanosecond
		loose bool
	}{
		{"fast", Config{}, true, looseRate, true},
		{"slow", Config{}, true, looseRate * 0.99, false},
		{"marks are the requests themselves", Config{}, false, 100, false},
		{"steady", Config{Steady: true}, true, 100, false},
		{"configured", Config{Window: 1 << 20}, true, 100, false},
		{"configured, adaptive", Config{Window: 1 << 20, Adaptive: true}, true, 100, true},
	} {
		w := sized(c.cfg, c.apart, c.rate)
		if w.loose != c.loose {
			t.Errorf("%s: loose %v, want %v", c.name, w.loose, c.loose)
		}
		if w.urgent(); w.loose {
			t.Errorf("%s: loose beside something urgent", c.name)
		}
	}
}

// A path that has become slow is found out by the marks that a loose window still has, within some of them.
func TestLooseWindowFindsOutThatThePathIsSlow(t *testing.T) {
	w := sized(Config{}, true, 8*looseRate)
	marks := 0
	for ; w.loose && marks < 20; marks++ {
		w.issue(0, 1<<20)
		w.mark()
		m := &w.marks[w.first]
		m.from, m.at = 0, 0 // a mebibyte in a second
		w.first, w.out = (w.first+1)%maxMarks, w.out-1
		w.proven = m.issued
		w.measure(m, int64(time.Second))
	}
	if w.loose || marks < 2 {
		t.Errorf("loose %v after %d marks", w.loose, marks)
	}
	if w.seen != w.proven {
		t.Errorf("%v taken for arrived, proven %v", w.seen, w.proven)
	}
}

// A probe is as long as a slice of the narrowest window: a longer one would measure itself.
func TestSlicesDoNotMeasureThemselves(t *testing.T) {
	var least, tuned, wide window
	for _, w := range []*window{&least, &tuned, &wide} {
		w.init(&Config{Steady: w != &wide}, true)
	}
	tuned.tuned *= 8
	wide.rate = 100
	for _, w := range []*window{&tuned, &wide} {
		w.resize()
		if w.longest() <= least.longest() {
			t.Errorf("slices of %d bytes, want more than %d", w.longest(), least.longest())
		}
		if w.probe = draining; w.longest() != least.longest() {
			t.Errorf("the delay is measured with %d bytes, want %d", w.longest(), least.longest())
		}
	}
}

// Where completions are local the window follows the rate, within bounds; else the delay.
func TestWindowOfLocalCompletionsFollowsTheRate(t *testing.T) {
	for _, c := range []struct {
		rate  float64 // bytes a nanosecond
		local bool
		want  int
	}{
		{0.05, true, startWindow},
		{2.048, true, 400 * minSlice},
		{20, true, awakeMost},
		{2.56, false, leastWindow},
		{200, true, 400_000 * 4 &^ (4*evenly - 1)}, // twice what is sent in the delay is more
		{200, false, 400_000 * 4 &^ (4*evenly - 1)},
	} {
		var w window
		w.init(&Config{Steady: true}, c.local)
		w.rate = c.rate
		w.measure(&mark{alone: true, at: 1}, 4001)
		if w.bytes != c.want {
			t.Errorf("%v bytes/ns, local %v: window %d, want %d", c.rate, c.local, w.bytes, c.want)
		}
		if c.local && (w.longest()%fpdu != 0 || w.every != w.slice) {
			t.Errorf("%v bytes/ns: slices of %d bytes with a mark in %d, want whole FPDUs and a mark behind each", c.rate,
				w.longest(), w.every)
		}
	}
}

// Automatic slices end where pages and packets do.
func TestAutomaticSlicesAreEven(t *testing.T) {
	for _, rate := range []float64{0.001, 0.0123, 0.0789, 0.3, 1.7, 23} {
		for _, apart := range []bool{false, true} {
			for _, steady := range []bool{false, true} {
				var w window
				w.init(&Config{Steady: steady}, apart)
				w.apart, w.rate = apart, rate
				w.measure(&mark{alone: true, at: 1}, 54_321)
				if w.longest()%evenly != 0 || w.every%evenly != 0 {
					t.Errorf("%v bytes/ns, apart %v, steady %v: slices of %d bytes, a mark in %d, want multiples of %d",
						rate, apart, steady, w.longest(), w.every, evenly)
				}
			}
		}
	}
}

// A wide window does not run empty to have the delay measured, which decides how wide the narrow one is; that one does.
func TestOnlyANarrowWindowMeasuresTheDelay(t *testing.T) {
	var w window
	w.init(&Config{}, false)
	w.rate, w.age = 0.09, probeEvery
	w.resize()
	fill := func() {
		for w.room(0, w.longest()) {
			w.issue(0, w.longest())
		}
	}
	if fill(); !w.wide || w.probe != noProbe {
		t.Errorf("wide %v, the probe is %d, want true and none", w.wide, w.probe)
	}
	w.empty()
	w.urgent()
	if fill(); w.wide || w.probe != draining {
		t.Errorf("beside something urgent: wide %v, the probe is %d, want false and draining", w.wide, w.probe)
	}
}

// A loose window wants proof once a tenth of a second has passed since the last, to the nanosecond.
func TestProofIsDueATenthOfASecondLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for after, want := range map[time.Duration]bool{proveEvery - 1: false, proveEvery: true} {
			w := marked(true)
			w.loose = true
			w.mark()
			time.Sleep(after)
			if w.hand(); w.want != want {
				t.Errorf("after %v proof is wanted: %v", after, w.want)
			}
		}
	})
}

// A window is narrow for a tenth of a second behind the last urgent request.
func TestNarrowForATenthOfASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for after, want := range map[time.Duration]bool{wideAfter - 1: true, wideAfter: false} {
			w := marked(false)
			w.urgent()
			w.mark()
			time.Sleep(after)
			if w.mark(); w.busy != want {
				t.Errorf("after %v the window is narrow: %v", after, w.busy)
			}
		}
	})
}
