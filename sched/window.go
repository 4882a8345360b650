package sched

import (
	"slices"
	"time"
)

// window is what one QP has under way: posted to the device below, and not known to have reached the peer. Nothing of
// it can be reordered, so it bounds how long an urgent request waits.
//
// Bytes are counted by class, and each class sees only what is as urgent as
// itself or more: bulk that fills its window does not keep an urgent request out.
//
// What reached the peer is known from marks. Where a completion is an acknowledgement, a mark is a signalled request.
// Where it is local (RFC 5040 §5.5), a mark is a read of zero bytes behind the data: its answer comes only after the
// peer's device has taken all that was sent before it (RFC 5040 §5.5 (12)), out of whatever sockets and buffers are in
// between.
//
// A device completes in post order, so what is behind such a read completes with its answer and not when it is sent. On
// a fast path that costs a stream several percent. While the window is wide and the path is fast, it is therefore
// loose: local completions make room, and a read proves arrival only now and then. It is tight again with the first
// urgent request, and counts from what was proven: nothing less urgent follows until a mark behind that request has its
// answer.
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

// probe is how far a measurement of the delay has come. The delay of a mark behind a full window says nothing but how
// long the window is, so now and then the window is left to run empty and one slice goes alone.
type probe uint8

const (
	noProbe probe = iota
	draining
	alone
)

// probeEvery is how many marks lie between two probes: a probe costs about one round trip, and 1024 marks are 256
// windows. The first comes early. A wide window is not drained: what the delay decides is how wide the narrow one is.
const (
	probeEvery = 1024
	probeFirst = 32
	tuneEvery  = 32 // marks after which a window follows the rate
)

// While nothing urgent waits, an adaptive window is as wide as what is sent in wideTime, at most wideMost: short slices
// and many marks cost a software stack a fifth of its rate, and the first urgent request waits for that much. Half of
// wideTime, which lies between two marks that are reads, has to be many round trips; elsewhere a mark is only a
// completion, and each of wideParts has one. Parts are a multiple of evenly, which is the page and every path MTU of
// IBTA, so that packets do not cross pages. A window that runs dry grows by 1/mostGrown, up to twice its size. It stays
// narrow for wideAfter after an urgent request.
const (
	wideTime  = 48 * time.Millisecond
	wideMost  = 4 << 20
	wideParts = 8 // as many as there are marks
	mostGrown = 4
	evenly    = 4 << 10
	wideAfter = 100 * time.Millisecond
)

// Where completions are local, a probe measures a peer that is awake already, and so too short a
// delay: while both ends work, the window is at least what is sent in awakeTime, to awakeMost. Slices
// are a multiple of fpdu then: MPA's longest FPDU is 64 KiB less one octet with its headers (RFC 5044
// §4.1), so that 128 KiB would be three, each with its system calls.
const (
	awakeTime = 200 * time.Microsecond
	awakeMost = 12 * fpdu
	fpdu      = 60 << 10
)

// A loose window leaves to the kernels how much waits in their sockets: with Linux's defaults up to 4 MiB here and 6 to
// 32 MiB there. The first urgent request waits for that, so the path has to carry it in 10 to 40 ms. What arrives is
// measured once in proveEvery, and as such a sample is an average, it is forgotten sooner.
const (
	looseRate   = 1.0 // bytes a nanosecond
	looseForget = 1.0 / 4
	proveEvery  = wideAfter
)

// bdpGain is how much of the bandwidth-delay product is kept under way. A probe
// finds an idle path, and the usual delay is longer.
const bdpGain = 2

func (w *window) init(c *Config, local bool) {
	*w = window{fixed: c.Window, cut: c.Slice, adaptive: c.adapts(), limit: maxMarks, local: local, least: leastWindow,
		tuned: leastWindow * 2, age: probeEvery - probeFirst}
	if local {
		// The peer is software behind a socket: below this much, its wake-ups show. Two processes that hand bytes to
		// each other through a socket need this much to keep both at work.
		w.tuned, w.least = startWindow, startWindow
	}
	w.resize()
}

// resize sets window and slice from the configuration and the measurement.
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
	// One that is as long as the window is wide would measure itself: the window that
	// its delay asks for has longer slices still.
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

// ranDry tells that nothing was under way any more while a request waited: the window is
// too narrow for this path and this machine.
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

// longest is how long the next slice may be.
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

// measure keeps the bandwidth-delay product: the best rate of late and the least delay of the last probes: whatever
// else a machine does only adds to it. The rate is that of what arrived since the mark was made, over the time since
// the arrival that was known then: what had arrived unknown would make it too high.
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
