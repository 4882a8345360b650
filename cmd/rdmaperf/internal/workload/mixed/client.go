package mixed

import (
	"errors"
	"slices"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/drive"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/transports"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

const proofSlot = 1 << 31

// lane is a session of the client. Each of its slots has a source for writes, and a destination for reads.
type lane struct {
	*engine.Lane
	order   *order
	proof   drive.Proof
	flights []flight        // by slot
	made    uint64          // operations begun in this phase
	out     int             // of these, not complete
	batch   []transports.Op // of which those from next on are still to be posted
	next    int
	proven  bool
}

type flight struct {
	operation
	n      uint64
	due    int64 // ns: when it was to start
	posted int64 // ns
	left   int   // completions to come; 0: the slot is free
}

type tally struct {
	rec    *reports.Recorder
	ops    int64
	bytes  int64
	blocks []int64 // operations by size
}

// worker is one thread's share. The clock is read before each post, and behind each poll that brought something.
type worker struct {
	*engine.Worker
	options *Options
	lanes   []*lane
	done    [directions]tally
	now     int64 // the clock as it was read last
	before  int64 // and the time before, in an open loop
}

type client struct {
	c       *engine.Group
	options *Options
	workers []*worker
}

func newClient(c *engine.Group, o *Options) *client {
	s := &client{c: c, options: o}
	for i, base := range c.Workers {
		w := &worker{Worker: base, options: o}
		for d, blocks := range o.blocksOf() {
			w.done[d] = tally{rec: reports.NewRecorder(), blocks: make([]int64, len(blocks))}
		}
		for _, l := range base.Lanes {
			w.lanes = append(w.lanes, &lane{Lane: l, proof: drive.NewProof(base, l),
				flights: make([]flight, c.Sh.Depth), batch: make([]transports.Op, 0, posts(o)*c.Sh.Depth)})
		}
		drive.Paced(base, c.Sh, i, len(c.Workers))
		s.workers = append(s.workers, w)
	}
	return s
}

func (s *client) Prepare(gen int) error {
	sh := s.c.Sh
	for _, w := range s.workers {
		for _, l := range w.lanes {
			l.proof.Gen = gen
			*l = lane{Lane: l.Lane, proof: l.proof, order: newOrder(s.options, sh, gen, l.Index),
				flights: l.flights, batch: l.batch[:0]}
			clear(l.flights)
			for i := range l.flights {
				engine.FillPattern(l.Mem[i*sh.Stride():][:sh.Size], sourceOf(&l.proof, i))
			}
		}
	}
	return nil
}

// sourceOf is what slot i of a connection writes, but for the stamps.
func sourceOf(p *drive.Proof, i int) uint64 { return p.State(1<<32 + i) }

func (s *client) Loop(base *engine.Worker) func() error {
	w := s.workers[base.Index]
	for d := range w.done {
		t := &w.done[d]
		t.rec.Reset()
		t.ops, t.bytes = 0, 0
		clear(t.blocks)
	}
	return w.run
}

// Counts are the operations of each connection: which they were follows from the seed.
func (s *client) Counts() []engine.LaneCount {
	counts := make([]engine.LaneCount, len(s.c.Lanes))
	for _, w := range s.workers {
		for _, l := range w.lanes {
			counts[l.Index].Count = int64(l.made)
		}
	}
	return counts
}

func (s *client) Verify(int, []engine.LaneCount) error { return nil }
func (s *client) Close() error                         { return nil }

func (s *client) Detail() any {
	var sum [directions]tally
	for d, blocks := range s.options.blocksOf() {
		t := &sum[d]
		t.rec, t.blocks = reports.NewRecorder(), make([]int64, len(blocks))
		for _, w := range s.workers {
			own := &w.done[d]
			t.rec.Merge(own.rec)
			t.ops, t.bytes = t.ops+own.ops, t.bytes+own.bytes
			for i, n := range own.blocks {
				t.blocks[i] += n
			}
		}
	}
	return sum
}

// run is one phase, which ends with a read that proves that everything arrived.
func (w *worker) run() error {
	deadline := w.Open()
	w.now, w.before = w.Begin, w.Begin
	err := w.flow(deadline)
	ended := w.now
	err = w.Finish(err, w.drain)
	for _, l := range w.lanes {
		w.Unanswered += int64(l.out) // of a run that was cut short
	}
	if w.End = w.now; w.Pace != nil {
		if err != nil || !w.all() {
			w.unsent(min(ended, deadline))
		}
		if w.Lim.Dur > 0 && err == nil {
			w.End = max(w.End, deadline)
		}
	}
	return err
}

func (w *worker) all() bool {
	return w.Lim.Ops > 0 && !slices.ContainsFunc(w.lanes, func(l *lane) bool { return l.made < uint64(w.Lim.Ops) })
}

func (w *worker) flow(deadline int64) error {
	for {
		for _, l := range w.lanes {
			if err := w.begin(l, deadline); err != nil {
				return err
			}
			if err := w.collect(l); err != nil {
				return err
			}
		}
		if w.Stopped() {
			return engine.ErrStop
		}
		if w.Pace != nil {
			w.before, w.now = w.now, engine.Now()
		}
		if w.now >= deadline || w.all() {
			return nil
		}
	}
}

// begin makes as many operations as there is room for, or the one that is due, and posts them.
func (w *worker) begin(l *lane, deadline int64) error {
	if l.next == len(l.batch) {
		l.batch, l.next = l.batch[:0], 0
		for w.more(l, deadline) {
			due := int64(0)
			if w.Pace != nil {
				due = w.Pace.Due()
				w.Pace.Next()
				if due < w.before {
					w.Late++
				}
			}
			w.add(l, due)
			if w.Pace != nil {
				break // so that connections take turns
			}
		}
	}
	return w.post(l)
}

func (w *worker) more(l *lane, deadline int64) bool {
	if w.Lim.Ops > 0 && l.made >= uint64(w.Lim.Ops) || l.flights[l.made%uint64(len(l.flights))].left > 0 {
		return false
	}
	return w.Pace == nil || w.Pace.Due() <= w.now && w.Pace.Due() < deadline
}

func (w *worker) add(l *lane, due int64) {
	sh := w.Sh
	slot := int(l.made % uint64(len(l.flights)))
	f := &l.flights[slot]
	*f = flight{operation: l.order.at(l.made), n: l.made, due: due, left: 1}
	l.made++
	l.out++
	op := transports.Op{Len: uint32(f.size), Slot: uint32(slot)}
	if f.dir == reads {
		op.Kind, op.Local, op.Remote = transports.KindRead, uint64(sh.RxSlot(slot)), uint64(f.cell*sh.Stride()+f.at)
		if sh.Verify {
			for i, b := range l.Mem[op.Local:][:min(f.size, headSize)] {
				l.Mem[int(op.Local)+i] = ^b // so that what is compared has to come
			}
		}
		l.batch = append(l.batch, op)
		return
	}
	op.Kind, op.Local, op.Remote = transports.KindWrite, uint64(slot*sh.Stride()), uint64(sh.RxSlot(f.cell)+f.at)
	if f.size <= sh.Inline {
		op.Flags = transports.Inline
	}
	if sh.Verify {
		stamp(l.Mem[op.Local:][:f.size], stampOf(&l.proof, f.n))
	}
	l.batch = append(l.batch, op)
	if w.options.Flush {
		f.left++
		l.batch = append(l.batch, transports.Op{Kind: transports.KindRead, Local: uint64(sh.RxSlot(slot)),
			Remote: op.Remote, Len: 1, Slot: uint32(slot)})
	}
}

// post starts what is in the batch. What does not fit into the queue stays there.
func (w *worker) post(l *lane) error {
	ops := l.batch[l.next:]
	if len(ops) == 0 {
		return nil
	}
	w.now = engine.Now()
	for i := range ops {
		if f := &l.flights[ops[i].Slot]; f.posted == 0 {
			f.posted = w.now
			if w.Pace == nil {
				f.due = w.now
			}
		}
	}
	n, err := l.S.Post(ops)
	l.next += n
	if n < len(ops) && err != rdma.ErrQueueFull {
		return w.Lost(l.Lane, "post "+ops[n].Kind.String(), err)
	}
	return nil
}

var errUnasked = errors.New("a completion that nothing asked for")

// collect takes one poll of completions: first all times, and then what was read.
func (w *worker) collect(l *lane) error {
	if l.out == 0 && w.Pace != nil {
		w.Spins = 0 // waiting for the next start is no stall
	}
	n, err := w.Poll(l.Lane)
	if n == 0 || err != nil {
		return err
	}
	w.now = engine.Now()
	for i := range w.Done[:n] {
		d := &w.Done[i]
		switch {
		case d.Status != rdma.StatusSuccess:
			return engine.StatusError(l.Lane, *d)
		case d.Slot == proofSlot:
			l.proven = true
			continue
		case int(d.Slot) >= len(l.flights) || l.flights[d.Slot].left == 0:
			return w.Lost(l.Lane, "poll", errUnasked)
		}
		f := &l.flights[d.Slot]
		if f.left--; f.left == 0 {
			l.out--
			w.complete(f)
		}
	}
	if !w.Sh.Verify {
		return nil
	}
	for i := range w.Done[:n] {
		if slot := w.Done[i].Slot; slot != proofSlot && l.flights[slot].dir == reads {
			if err := w.compare(l, int(slot)); err != nil {
				return err
			}
		}
	}
	return nil
}

func (w *worker) complete(f *flight) {
	took := w.now - f.due
	w.Ops++
	service := int64(0) // of a closed loop it is the same
	if w.Pace != nil {
		service = w.now - f.posted
		w.Service.Record(service)
	}
	w.Record(w.now, took, service)
	t := &w.done[f.dir]
	t.rec.Record(took)
	t.ops++
	t.bytes += int64(f.size)
	t.blocks[f.block]++
}

// headSize is how much of each read is compared.
const headSize = 8

func (w *worker) compare(l *lane, slot int) error {
	sh, f := w.Sh, &l.flights[slot]
	return l.proof.Text("answer to read", f.n, l.Mem[sh.RxSlot(slot):][:f.size], l.proof.State(f.cell), f.at,
		l.proof.Whole(f.n))
}

// stampOf is what marks the bytes of write n.
func stampOf(p *drive.Proof, n uint64) uint64 { return engine.Word(p.State(1<<33), int(n)) }

func stamp(b []byte, mark uint64) {
	for ; len(b) > 0; b = b[min(len(b), grain):] {
		drive.PutNumber(b, mark)
	}
}

func (w *worker) drain() error {
	for _, l := range w.lanes {
		for l.out > 0 || l.next < len(l.batch) {
			if err := w.post(l); err != nil {
				return err
			}
			if err := w.collect(l); err != nil {
				return err
			}
		}
		if err := drive.ReadBehind(w.Worker, l.Lane, proofSlot); err != nil {
			return err
		}
	}
	for _, l := range w.lanes {
		for !l.proven {
			if err := w.collect(l); err != nil {
				return err
			}
		}
	}
	return nil
}

// unsent counts what was due before the end and not begun, each in its direction as the mix has them.
func (w *worker) unsent(end int64) {
	carried := 0
	w.Unsent = w.Pace.Overdue(end, func(waited, n int64) {
		w.Rec.AtLeast(waited, n)
		carried += int(n%hundred) * w.options.ReadPercent
		r := n/hundred*int64(w.options.ReadPercent) + int64(carried/hundred)
		carried %= hundred
		r = min(r, n)
		w.done[reads].rec.AtLeast(waited, r)
		w.done[writes].rec.AtLeast(waited, n-r)
	})
}
