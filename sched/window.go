package sched

import (
	"slices"
	"time"
)

// window is what one QP has under way: posted below and not known to have reached the peer. Each class sees only bytes
// that are as urgent as itself or more.
//
// Marks tell what reached the peer: signalled requests where completions acknowledge, and where they are local (RFC
// 5040 §5.5) reads of zero bytes, answered behind all that was sent before them (RFC 5040 §5.5 (12)). What is behind
// such a read completes with its answer, which costs a fast stream several percent: while nothing urgent is about, a
// wide window on a fast path is loose and counts local completions. The first urgent request makes it tight again.
type window struct {
	bytes  int // the window at present
	slice  int // the longest slice at present
	probed int // the slice that goes alone to measure the delay
	every  int // bytes between two marks
	rarely int // bytes between two that are reads of their own, where nothing waits

	fixed    int // configured window and slice; 0: measured
	cut      int
	adaptive bool
	least    int
	local    bool  // completions below are local
	busy     bool  // something urgent came a short while ago, and the window is narrow
	wide     bool  // the window is wide
	fresh    bool  // and has come since the last mark
	grown    int   // how often the wide one ran dry since something urgent came
	wideAt   int64 // when it may be wide again, if nothing urgent comes
	apart    bool  // marks are reads of their own
	loose    bool  // and are not needed for room
	want     bool  // but one is due

	issued [Priorities]uint64 // bytes posted, of this class or a more urgent one
	seen   [Priorities]uint64 // of those, bytes taken for arrived
	proven [Priorities]uint64 // of those, bytes known to have arrived
	since  int                // bytes posted after the last mark
	asked  uint64             // bytes posted before the last one that proves
	askAt  int64              // when that was

	marks      [maxMarks]mark
	first, out int // oldest mark, and how many are under way
	limit      int // most marks under way, of both kinds

	handed       [maxMarks][Priorities]uint64 // issued at marks that tell only what is sent
	hFirst, hOut int                          // as first and out

	share share // in the window of several QPs

	tuned int      // window by the measurement
	rate  float64  // best of late, bytes a nanosecond
	last  int64    // when the last mark arrived
	delay [4]int64 // of the last probes
	taken int      // probes
	age   int      // marks since the last one
	probe probe
}

// mark is a point in the stream of posts.
type mark struct {
	issued [Priorities]uint64
	seen   uint64 // of class 0 and above, when the mark was made
	from   int64  // when so much was seen
	at     int64
	alone  bool
	loose  bool
}

// probe is how far a measurement of the delay is: the window runs empty, and one slice goes alone.
type probe uint8

const (
	noProbe probe = iota
	draining
	alone
)

// Marks between two probes, each of which costs about one round trip: 1024 marks are 256 windows.
const (
	probeEvery = 1024
	probeFirst = 32
	tuneEvery  = 32 // marks after which a window follows the rate
)

// An adaptive window is as wide as what is sent in wideTime, while nothing urgent waits: short slices and many marks
// cost a software stack a fifth of its rate. Parts are multiples of evenly, the page and every path MTU of IBTA. A
// window that runs dry grows by 1/mostGrown, up to twice its size.
const (
	wideTime  = 48 * time.Millisecond
	wideMost  = 4 << 20
	wideParts = 8 // as many as there are marks
	mostGrown = 4
	evenly    = 4 << 10
	wideAfter = 100 * time.Millisecond
)

// Where completions are local, a probe finds a peer that is awake, and too short a delay: the window is at least what
// is sent in awakeTime. Slices are multiples of fpdu, as MPA's longest FPDU is 64 KiB less one octet (RFC 5044 §4.1).
const (
	awakeTime = 200 * time.Microsecond
	awakeMost = 12 * fpdu
	fpdu      = 60 << 10
)

// The first urgent request waits for what a loose window leaves in sockets (Linux: 4 MiB here, 6 to 32 MiB there),
// which the path has to carry in 10 to 40 ms. What arrives is measured once in proveEvery.
const (
	looseRate   = 1.0 // bytes a nanosecond
	looseForget = 1.0 / 4
	proveEvery  = wideAfter
)

// bdpGain is how much of the bandwidth-delay product is under way: a probe finds an idle path.
const bdpGain = 2

func (w *window) init(c *Config, local bool) {
	*w = window{fixed: c.Window, cut: c.Slice, adaptive: c.adapts(), limit: maxMarks, local: local, least: leastWindow,
		tuned: leastWindow * 2, age: probeEvery - probeFirst}
	if local {
		// The wake-ups of a peer that is software behind a socket show below this.
		w.tuned, w.least = startWindow, startWindow
	}
	w.resize()
}

func (w *window) resize() {
	w.bytes = w.fixed
	if w.bytes == 0 {
		w.bytes = max(w.tuned, w.cut)
	}
	w.every, w.rarely, w.wide = w.bytes/4, w.bytes/2, false
	w.slice = w.cut
	if w.slice == 0 {
		w.slice = max(w.bytes/4, minSlice)
		if w.local && w.slice >= fpdu {
			w.slice = (w.slice + fpdu/2) / fpdu * fpdu
			w.every = w.slice
		}
	}
	// One as long as a wide window would measure itself: its delay would ask for longer slices still.
	w.probed = min(w.slice, w.least/4)
	if w.adaptive && !w.busy {
		sent := int(w.rate*float64(wideTime)) * (mostGrown + w.grown) / mostGrown
		if wide := min(sent, wideMost) &^ (wideParts*evenly - 1); wide > w.bytes {
			slice, every := wide/4, wide/2
			if !w.apart {
				slice, every = wide/wideParts, wide/wideParts
			}
			w.bytes, w.slice, w.wide = wide, max(w.slice, slice), true
			w.every, w.rarely = every, wide/2
		}
	}
	was := w.loose
	w.loose = w.apart && w.adaptive && !w.busy && w.probe == noProbe && w.rate >= looseRate
	if was && !w.loose {
		w.seen, w.since, w.want = w.proven, int(w.issued[0]-w.asked), false
	}
}

// asks reports whether the next mark is a read of its own.
func (w *window) asks() bool { return w.apart && (!w.loose || w.want) }

// urgent tells that a request found less urgent ones before it.
func (w *window) urgent() {
	w.fresh = true // the clock is read at the next mark, not here
	if !w.busy {
		w.busy, w.grown = true, 0
		w.resize()
	}
}

// ranDry tells that nothing was under way while a request waited: the window is too narrow.
func (w *window) ranDry() {
	if w.wide && !w.apart && w.grown < mostGrown {
		w.grown++
		w.resize()
	}
}

// under is how many bytes of class c or a more urgent one are under way.
func (w *window) under(c int) uint64 { return w.issued[c] - w.seen[c] }

// lesser reports whether less urgent bytes than class c may still be on their way.
func (w *window) lesser(c int) bool {
	return w.issued[0]-w.proven[0] > w.issued[c]-w.proven[c]
}

func (w *window) longest() uint64 {
	if w.probe == draining {
		return uint64(w.probed)
	}
	return uint64(w.slice)
}

// room reports whether n bytes of class c may go now. One request may always go.
func (w *window) room(c int, n uint64) bool {
	u := w.under(c)
	if u == 0 {
		return true
	}
	if w.probe != noProbe {
		return false
	}
	others := w.others(c)
	if u+n+others <= uint64(w.bytes) {
		return true
	}
	if others == 0 && w.fixed == 0 && w.age >= probeEvery && !w.loose && !w.wide {
		w.probe = draining
	}
	return false
}

func (w *window) issue(class int, n uint64) {
	for c := 0; c <= class; c++ {
		w.issued[c] += n
	}
	w.since += int(n)
}

// due reports whether a mark should follow what was posted.
func (w *window) due() bool {
	return w.out+w.hOut < w.limit && (w.since >= w.every || w.probe == draining && w.out == 0)
}

// hand notes a mark that tells when what was posted is sent.
func (w *window) hand() {
	w.handed[(w.hFirst+w.hOut)%maxMarks] = w.issued
	w.hOut++
	w.since = 0
	w.want = now()-w.askAt >= int64(proveEvery)
}

// sent takes the oldest of those. A window that is not loose any more does without it.
func (w *window) sent() {
	m := &w.handed[w.hFirst]
	w.hFirst = (w.hFirst + 1) % maxMarks
	w.hOut--
	for c := range w.seen {
		if w.loose && m[c] > w.seen[c] {
			w.seen[c] = m[c]
		}
	}
}

// mark notes one behind what was posted. The caller checked due, or that none is under way.
func (w *window) mark() {
	// What is before the mark that a probe waits for is what came after the last one.
	lonely := w.probe == draining && w.under(0) == uint64(w.since)
	if lonely {
		w.probe = alone
	}
	at := now()
	w.marks[(w.first+w.out)%maxMarks] = mark{w.issued, w.proven[0], w.last, at, lonely, w.loose}
	w.out++
	w.since, w.asked, w.askAt, w.want = 0, w.issued[0], at, false
	switch {
	case w.fresh:
		w.fresh, w.wideAt = false, at+int64(wideAfter)
	case w.busy && at >= w.wideAt:
		w.busy = false
		w.resize()
	}
}

// arrived takes the oldest mark: everything posted before it is at the peer.
func (w *window) arrived() {
	m := &w.marks[w.first]
	w.first = (w.first + 1) % maxMarks
	w.out--
	w.proven = m.issued
	for c := range w.seen {
		w.seen[c] = max(w.seen[c], m.issued[c])
	}
	if w.fixed == 0 || w.adaptive {
		w.measure(m, now())
	}
}

// empty tells that nothing is under way: what came after the last mark, too, has arrived.
func (w *window) empty() { w.seen, w.proven, w.since = w.issued, w.issued, 0 }

// measure keeps the best rate of late and the least delay of the last probes: whatever else a machine does adds to it.
// The rate is that of what arrived since the mark was made, over the time since the arrival known then.
func (w *window) measure(m *mark, at int64) {
	w.last = at
	w.age++
	if m.alone {
		w.probe, w.age = noProbe, 0
		w.delay[w.taken%len(w.delay)] = max(at-m.at, 1)
		w.taken++
	} else {
		forget := 1.0 / 64
		if m.loose {
			forget = looseForget
		}
		w.rate = max(float64(m.issued[0]-m.seen)/float64(max(at-m.from, 1)), w.rate*(1-forget))
		if w.age%tuneEvery != 0 && !m.loose {
			return
		}
	}
	if w.fixed == 0 && w.taken > 0 {
		least := slices.Min(w.delay[:min(w.taken, len(w.delay))])
		bytes := max(int(w.rate*float64(least))*bdpGain, w.least)
		if w.local {
			bytes = max(bytes, min(int(w.rate*float64(awakeTime)), awakeMost))
		}
		w.tuned = min(bytes, mostWindow) &^ (4*evenly - 1)
	}
	w.resize()
}

var began = time.Now()

// now is monotonic time in nanoseconds.
func now() int64 { return int64(time.Since(began)) }
