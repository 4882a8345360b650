package pairs

import (
	"context"
	"time"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/drive"
)

// Place is where a write goes to.
type Place struct {
	Region int
	Off    uint64
}

func (a Place) overlaps(b Place, size int) bool {
	return a.Region == b.Region && a.Off < b.Off+uint64(size) && b.Off < a.Off+uint64(size)
}

// Target is memory at the far end that is written to from slots, each of which has one write under way at most.
type Target interface {
	// Source is what the writes of a slot carry, the longest whole.
	Source(slot int) []byte
	// Write posts one. ok is false when it has to wait.
	Write(slot int, at Place, size int) (ok bool, err error)
	// Poll says of which slots the writes have ended, and returns how many.
	Poll(ended func(slot int)) (int, error)
	// Read copies what lies at the far end.
	Read(at Place, b []byte) error
	// Drive lets the far end take what has arrived, where nobody else polls it.
	Drive() error
}

// What a slot does. A chosen one is compared before the slot is used again, a last one when the window is over.
const (
	slotFree = iota
	slotPosted
	slotComparing
	slotKept
)

type slot struct {
	state        int
	chosen, last bool
	at           Place
	number       uint64
	since        time.Time // when its comparison began
}

// Writes streams numbered writes to a target.
type Writes struct {
	Target
	*drive.Proof
	Slots int
	Size  int
	Now   func() int64
	Next  func(slot int) Place // where a slot's next write goes
	Apart bool                 // no two slots ever write to one place
	More  func() bool          // whether to go on; nil: until all are written
	Ended func(slot int)       // called for each write that has ended; may be nil
	Found func(slot int)       // and of each whose bytes were found after that; likewise

	slots     []slot
	number    uint64
	turn      int
	drawn     bool // the slot whose turn it is has a place for its next write
	comparing int
	got       []byte
}

// Do does n writes, by all slots in turn, and returns how long they took, by Now. A sampled slot waits until its bytes
// are found at the far end; the last write of each slot is compared after that, unless More ended them.
func (w *Writes) Do(ctx context.Context, n int) (ns int64, err error) {
	if w.slots == nil {
		w.slots = make([]slot, w.Slots)
		for i := range w.slots {
			drive.FillSender(w.Source(i), i)
		}
	}
	w.got = append(w.got[:0], make([]byte, w.Size)...)
	posted, done := 0, 0
	ended := func(i int) {
		if w.Ended != nil {
			w.Ended(i)
		}
		s := &w.slots[i]
		switch {
		case s.last:
			s.state = slotKept
		case s.chosen:
			w.begin(s)
		default:
			s.state = slotFree
		}
	}
	begin := w.Now()
	for idle := 0; done < posted || posted < n; {
		if posted < n && w.More != nil && !w.More() {
			n = posted
			continue
		}
		for tries := 0; tries < w.Slots && posted < n; tries++ {
			if w.slots[w.turn].state == slotFree {
				ok, err := w.post(n - posted)
				if err != nil {
					return 0, err
				}
				if !ok {
					break
				}
				posted++
			}
			w.turn = (w.turn + 1) % w.Slots
		}
		k, err := w.Poll(ended)
		if err != nil {
			return 0, err
		}
		if err := w.compare(); err != nil {
			return 0, err
		}
		if done += k; k > 0 {
			idle = 0
		} else if idle++; idle%(1<<16) == 0 && ctx.Err() != nil {
			return 0, ctx.Err()
		}
	}
	ns = w.Now() - begin
	return ns, w.rest(ctx)
}

// post reports whether it could post the write of the slot whose turn it is. Nothing overlaps a write that is compared
// while either is under way: writes on several queue pairs have no order.
func (w *Writes) post(left int) (bool, error) {
	s := &w.slots[w.turn]
	if !w.drawn {
		w.number++
		w.drawn = true
		s.number, s.at = w.number, w.Next(w.turn)
		s.last = w.L.Sh.Verify && left <= w.Slots
		s.chosen = w.L.Sh.Verify && w.Whole(s.number)
		drive.PutNumber(w.Source(w.turn)[:w.Size], s.number)
	}
	if !w.Apart && w.L.Sh.Verify && w.meets(s) {
		return false, nil
	}
	ok, err := w.Write(w.turn, s.at, w.Size)
	if ok {
		s.state, w.drawn = slotPosted, false
	}
	return ok, err
}

// meets reports whether a write would meet another that is under way. A last one that did its part is compared now.
func (w *Writes) meets(s *slot) (some bool) {
	for i := range w.slots {
		o := &w.slots[i]
		if o.state == slotFree || !s.proven() && !o.proven() || !o.at.overlaps(s.at, w.Size) {
			continue
		}
		if some = true; o.state == slotKept {
			w.begin(o)
		}
	}
	return some
}

func (w *Writes) begin(s *slot) {
	s.state, s.since = slotComparing, time.Now()
	w.comparing++
}

func (s *slot) proven() bool { return s.chosen || s.last }

func (w *Writes) compare() error {
	for i := 0; w.comparing > 0 && i < len(w.slots); i++ {
		if w.slots[i].state != slotComparing {
			continue
		}
		there, err := w.there(i)
		if err != nil {
			return err
		}
		if there {
			w.slots[i].state = slotFree
			w.comparing--
		}
	}
	return nil
}

// rest compares what is left when the window is over: a completion may be local, and the bytes on their way.
func (w *Writes) rest(ctx context.Context) error {
	for i := range w.slots {
		s := &w.slots[i]
		if s.state == slotKept {
			s.since = time.Now()
		}
		for s.state != slotFree {
			there, err := w.there(i)
			if err != nil {
				return err
			}
			if there {
				s.state = slotFree
			} else if ctx.Err() != nil {
				return ctx.Err()
			}
		}
	}
	w.comparing = 0
	return nil
}

// there reports whether a slot's bytes have arrived, and is an error when they should have.
func (w *Writes) there(i int) (bool, error) {
	s := &w.slots[i]
	if err := w.Read(s.at, w.got); err != nil {
		return false, err
	}
	if w.Same(w.got, i, s.number) {
		if w.Found != nil {
			w.Found(i)
		}
		return true, nil
	}
	if time.Since(s.since) > w.L.Sh.Timeout {
		return false, w.Corrupt(w.got, i, s.number)
	}
	return false, w.Drive()
}
