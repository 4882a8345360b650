package paramserver

import (
	"fmt"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/drive"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/transports"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

type trainTensor struct {
	off, size         uint64
	forward, backward float64 // shares of the computation
	priority          uint8
	at                int64 // when it was back
	back              bool
}

type rounds struct {
	times  []float64
	posted int64
}

// trainer is the client's loop. Computation is that of an accelerator beside the thread, whose own time, ready, only a
// tensor that is not back yet can hold up.
type trainer struct {
	compute  int64 // ns of computation an iteration of the next phase
	priority bool  // there, the earlier a tensor is needed, the more urgent it is
	levels   int   // of priority
	c        *engine.Group
	w        *engine.Worker
	l        *engine.Lane
	n        int
	cuts     drive.Cuts // of the parameters of each iteration
	posted   int64      // iterations of the phase

	tensors []trainTensor
	ready   int64 // monotonic ns: when the computation so far is done

	made, sent int  // gradients of the phase that are there, and those of them that are posted: see tensor
	half       bool // of the next one, the push is posted and the pull is not

	last  int64 // end of the iteration before
	out   int   // operations outstanding
	times []float64
}

// trainTimes bounds the iterations whose times are kept for the confidence interval.
const trainTimes = 1 << 16

func newTrainer(c *engine.Group, m *Model, tensorBytes float64, levels int) *trainer {
	c.Workers[0].UnderWay(2 * int64(c.Sh.Size)) // out and back, however many tensors
	d := &trainer{levels: levels, c: c, w: c.Workers[0], l: c.Lanes[0], n: len(m.Tensors),
		times: make([]float64, 0, trainTimes)}
	d.cuts = drive.NewCuts(drive.NewProof(d.w, d.l), 0, c.Sh.Slots)
	d.tensors = make([]trainTensor, d.n)
	var all float64
	for _, x := range m.Tensors {
		all += float64(x.MultiplyAdds)
	}
	off := uint64(0)
	for i, size := range m.sizes(tensorBytes) {
		// The gradients by the inputs and by the weights cost a forward pass each.
		share := float64(m.Tensors[i].MultiplyAdds) / all
		d.tensors[i] = trainTensor{off: off, size: uint64(size), forward: share / 3, backward: share * 2 / 3}
		off += uint64(size)
	}
	return d
}

func newParameters(c *engine.Group) (engine.Side, error) {
	w := c.Workers[0]
	return drive.NewExposed(c, false, func(p *drive.Proof, sent engine.LaneCount) error {
		cuts := drive.NewCuts(*p, 0, c.Sh.Slots)
		return compareLast(w, &cuts, sent.Count)
	}), nil
}

// compareLast counts bytes alone: as messages the worker counts parameters when they are back.
func compareLast(w *engine.Worker, cuts *drive.Cuts, iterations int64) error {
	compared := w.Compared
	err := cuts.Rest(0, iterations)
	compared.Bytes = w.Compared.Bytes
	w.Compared = compared
	return err
}

func (d *trainer) Prepare(gen int) error {
	d.l.ClearSlots()
	d.cuts.Begin(gen)
	return nil
}

// Loop begins a phase with every tensor back and nothing under way.
func (d *trainer) Loop(*engine.Worker) func() error {
	for i := range d.tensors {
		t := &d.tensors[i]
		t.priority, t.at, t.back = 0, 0, false
		if d.priority { // levels are evenly divided: what is needed first is the most urgent
			t.priority = uint8(d.levels - 1 - i*d.levels/d.n)
		}
	}
	d.posted, d.ready, d.made, d.sent, d.half, d.last, d.out = 0, 0, 0, 0, false, 0, 0
	d.times = make([]float64, 0, trainTimes) // the outcome of the phase before keeps its own
	return d.run
}

func (d *trainer) Detail() any                { return rounds{d.times, d.posted} }
func (d *trainer) Counts() []engine.LaneCount { return []engine.LaneCount{{Count: d.posted}} }
func (d *trainer) Close() error               { return nil }

func (d *trainer) Verify(_ int, _ []engine.LaneCount) error {
	return compareLast(d.w, &d.cuts, d.posted)
}

// run is one phase. The first iteration waits for nothing: the window begins at its end.
func (d *trainer) run() error {
	w := d.w
	w.Open()
	d.ready = w.Begin
	return w.Finish(d.iterate(), d.drain)
}

func (d *trainer) iterate() error {
	w := d.w
	for k := int64(0); ; k++ {
		if err := d.forward(k > 0); err != nil {
			return err
		}
		if err := d.backward(); err != nil {
			return err
		}
		d.posted++
		w.End = d.ready
		if k == 0 {
			w.Begin = d.ready
		} else {
			took := d.ready - d.last
			w.Record(d.ready, took, 0)
			if len(d.times) < cap(d.times) {
				d.times = append(d.times, float64(took))
			}
			w.Ops++
		}
		d.last = d.ready
		if w.Lim.Ops > 0 && w.Ops >= w.Lim.Ops || w.Lim.Dur > 0 && w.Ops > 0 && w.End-w.Begin >= int64(w.Lim.Dur) {
			return nil
		}
	}
}

func (d *trainer) forward(wait bool) error {
	for i := range d.tensors {
		t := &d.tensors[i]
		for wait && !t.back {
			if err := d.turn(); err != nil {
				return err
			}
		}
		if wait {
			d.ready = max(d.ready, t.at)
		}
		if err := d.work(t.forward); err != nil {
			return err
		}
	}
	return nil
}

func (d *trainer) backward() error {
	for i := d.n - 1; i >= 0; i-- {
		if err := d.work(d.tensors[i].backward); err != nil {
			return err
		}
		if err := d.gradient(); err != nil {
			return err
		}
	}
	return nil
}

// work waits until the accelerator is done with a share of the computation.
func (d *trainer) work(share float64) error {
	d.ready += int64(share * float64(d.compute))
	for engine.Now() < d.ready {
		if d.out == 0 && d.sent == d.made {
			d.w.Spins = 0 // computing is no stall
		}
		if err := d.turn(); err != nil {
			return err
		}
	}
	return nil
}

// tensor is that of gradient k of a phase: they are computed and sent back to front, iteration after iteration.
func (d *trainer) tensor(k int) int { return d.n - 1 - k%d.n }

func (d *trainer) gradient() error {
	d.tensors[d.tensor(d.made)].back = false
	d.made++
	return d.flush()
}

// flush posts pushes, each with its pull behind it. A read finds what a write before it on the same QP wrote (IBTA
// 10.8.3.3, RFC 5040 §5.5), and equal priorities keep their order in a scheduler.
func (d *trainer) flush() error {
	l := d.l
	for d.sent < d.made {
		i := d.tensor(d.sent)
		t := &d.tensors[i]
		rx := uint64(l.Sh.RxOff())
		from := d.cuts.From(int64(d.sent / d.n))
		l.Pair[0] = transports.Op{Kind: transports.KindWrite, Local: from + t.off, Remote: rx + t.off,
			Len: uint32(t.size), Priority: t.priority, Slot: uint32(i)}
		l.Pair[1] = transports.Op{Kind: transports.KindRead, Local: rx + t.off, Remote: rx + t.off, Len: uint32(t.size),
			Priority: t.priority, Slot: uint32(i)}
		done := 0
		if d.half {
			done = 1
		}
		if d.out+2-done > l.Sh.Depth {
			return nil
		}
		k, err := l.S.Post(l.Pair[done:])
		d.out += k
		if done += k; done < 2 {
			d.half = done == 1
			if err == rdma.ErrQueueFull {
				return nil
			}
			return d.w.Lost(l, "post "+l.Pair[done].Kind.String(), err)
		}
		d.half = false
		d.sent++
	}
	return nil
}

func (d *trainer) turn() error {
	w, l := d.w, d.l
	if w.Stopped() && !w.Finishing {
		return engine.ErrStop
	}
	if d.sent < d.made {
		if err := d.flush(); err != nil {
			return err
		}
	}
	n, err := w.Poll(l)
	if err != nil || n == 0 {
		return err
	}
	t := engine.Now()
	for i := range w.Done[:n] {
		c := &w.Done[i]
		if c.Status != rdma.StatusSuccess {
			return engine.StatusError(l, *c)
		}
		d.out--
		if c.Kind == transports.KindRead {
			if x := &d.tensors[c.Slot]; x.back || uint64(c.Len) != x.size {
				return engine.Failed(l.Sh.String(), fmt.Errorf("tensor %d: pulled %d bytes, want %d once", c.Slot,
					c.Len, x.size))
			}
			d.tensors[c.Slot].at, d.tensors[c.Slot].back = t, true
			if l.Sh.Verify {
				if err := d.compare(int(c.Slot)); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func (d *trainer) compare(i int) error {
	x := &d.tensors[i]
	k := int64((d.sent+i)/d.n - 1) // the last iteration of which it was posted
	return d.cuts.Compare(d.l.Mem[d.l.Sh.RxOff()+int(x.off):][:x.size], int(x.off), k,
		d.cuts.Whole(uint64(k)*uint64(d.n)+uint64(i)))
}

// drain also sends the rest of an iteration that was stopped, so that every tensor is of the same one.
func (d *trainer) drain() error {
	if done := int(d.posted) * d.n; d.made > done || d.posted == 0 {
		for d.made < done+d.n {
			if err := d.gradient(); err != nil {
				return err
			}
		}
		d.posted++
	}
	for d.out > 0 || d.sent < d.made {
		if err := d.turn(); err != nil {
			return err
		}
	}
	return nil
}
