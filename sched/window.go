package sched

import "time"

// window is what one QP has under way: posted to the device below, and not known
// to have reached the peer. Nothing of it can be reordered, so it bounds how long
// an urgent request waits.
//
// Bytes are counted by class, and each class sees only what is as urgent as
// itself or more: bulk that fills its window does not keep an urgent request out.
//
// What reached the peer is known from marks. Where a completion is an
// acknowledgement, a mark is a signalled request. Where it is local (RFC 5040
// §5.5), a mark is a read of zero bytes behind the data: its answer comes only
// after the peer's device has taken all that was sent before it (RFC 5040 §5.5
// (12)), out of whatever sockets and buffers are in between.
type window struct {
	bytes int // the window at present
	slice int // the longest slice at present

	fixed    int // configured window and slice; 0: measured
	cut      int
	adaptive bool
	least    int
	busy     int // marks until the window may be wide again

	issued [Priorities]uint64 // bytes posted, of this class or a more urgent one
	seen   [Priorities]uint64 // of those, bytes known to have arrived
	since  int                // bytes posted after the last mark

	marks      [maxMarks]mark
	first, out int // oldest mark, and how many are under way
	limit      int // most marks under way
	shortest   int64
	rate       float64 // bytes a nanosecond
	tuned      int     // window by the measurement
}

// mark is a point in the stream of posts.
type mark struct {
	issued [Priorities]uint64
	seen   uint64 // of class 0 and above, when the mark was made
	at     int64
}

// busyMarks is how many marks after the last urgent request an adaptive window
// stays narrow: a few milliseconds of bulk at any rate. Arbitrary.
const busyMarks = 256

// bdpGain is how much of the bandwidth-delay product is kept under way. The
// shortest delay is what is measured, and the usual one is longer.
const bdpGain = 4

func (w *window) init(c *Config, local bool) {
	*w = window{fixed: c.Window, cut: c.Slice, adaptive: c.Adaptive, limit: maxMarks, least: leastWindow, tuned: startWindow}
	if local {
		// The peer is software behind a socket: below this much, its wake-ups show.
		w.least = startWindow
	}
	w.resize()
}

// resize sets window and slice from the configuration and the measurement.
func (w *window) resize() {
	w.bytes = w.fixed
	if w.bytes == 0 {
		w.bytes = max(w.tuned, w.cut)
	}
	w.slice = w.cut
	if w.slice == 0 {
		w.slice = max(w.bytes/4, minSlice)
	}
	if w.adaptive && w.busy == 0 {
		w.bytes = min(w.bytes*adaptiveGain, maxWindow)
		w.slice = min(w.slice*adaptiveGain, w.bytes, maxSlice)
	}
}

// urgent tells that a request found less urgent ones before it.
func (w *window) urgent() {
	if !w.adaptive {
		return
	}
	was := w.busy
	if w.busy = busyMarks; was == 0 {
		w.resize()
	}
}

// under is how many bytes of class c or a more urgent one are under way.
func (w *window) under(c int) uint64 { return w.issued[c] - w.seen[c] }

// room tells whether n bytes of class c may go now. One request may always go.
func (w *window) room(c int, n uint64) bool {
	u := w.under(c)
	return u == 0 || u+n <= uint64(w.bytes)
}

func (w *window) issue(class int, n uint64) {
	for c := 0; c <= class; c++ {
		w.issued[c] += n
	}
	w.since += int(n)
}

// every is how many bytes lie between two marks.
func (w *window) every() int { return w.bytes / 4 }

// due tells whether a mark should follow what was posted.
func (w *window) due() bool { return w.since >= w.every() && w.out < w.limit }

// mark notes one behind what was posted. The caller checked due, or that none is
// under way.
func (w *window) mark() {
	w.marks[(w.first+w.out)%maxMarks] = mark{w.issued, w.seen[0], now()}
	w.out++
	w.since = 0
}

// arrived takes the oldest mark: everything posted before it is at the peer.
func (w *window) arrived() {
	m := &w.marks[w.first]
	w.first = (w.first + 1) % maxMarks
	w.out--
	w.seen = m.issued
	if w.busy > 0 {
		if w.busy--; w.busy == 0 {
			w.resize()
		}
	}
	if w.fixed == 0 {
		w.measure(m)
	}
}

// empty tells that nothing is under way: what came after the last mark, too, has
// arrived.
func (w *window) empty() { w.seen, w.since = w.issued, 0 }

// measure keeps the bandwidth-delay product: the best rate of late, and the
// shortest time a mark took, which has the least waiting in it.
func (w *window) measure(m *mark) {
	took := max(now()-m.at, 1)
	if w.shortest == 0 || took < w.shortest {
		w.shortest = took
	}
	got := float64(m.issued[0]-m.seen) / float64(took)
	w.rate = max(got, w.rate*(1-1.0/64))
	bdp := int(w.rate*float64(w.shortest)) * bdpGain
	bdp = min(max(bdp, w.least), mostWindow) &^ (minSlice - 1)
	// Small changes are noise, and a slice that keeps its length costs less.
	if d := bdp - w.tuned; d > w.tuned/4 || d < -w.tuned/4 {
		w.tuned = bdp
		w.resize()
	}
}

var began = time.Now()

// now is monotonic time in nanoseconds.
func now() int64 { return int64(time.Since(began)) }
