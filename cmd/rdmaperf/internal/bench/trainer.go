package bench

import (
	"fmt"

	"github.com/rdmaperf/rdmaperf/transports"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// training is what the client does in a phase of the parameter server workload.
type training struct {
	compute  int64 // ns of computation an iteration
	priority bool  // the earlier a tensor is needed, the more urgent it is
}

// trainTensor is one tensor as the loop needs it.
type trainTensor struct {
	off, size         uint64
	forward, backward float64 // shares of the computation
	priority          uint8
	at                int64 // when it was back
	back              bool
	sent              bool // in this phase
}

// trainer is the client's loop: one worker of a data-parallel training with one
// parameter server.
//
// Computation is that of an accelerator beside the thread: it has a time line of its
// own, ready, which goes on while the thread posts and polls, and which only a tensor
// that is not back yet can hold up. The thread polls all the time.
type trainer struct {
	training
	w *worker
	l *lane
	n int

	tensors []trainTensor
	ready   int64 // monotonic ns: when the computation so far is done

	queue  []int // tensors whose gradients are there and not posted, a ring
	first  int
	queued int
	half   bool // of the first, the push is posted and the pull is not

	last  int64 // end of the iteration before
	out   int   // operations outstanding
	times []float64
}

// trainTimes bounds the iterations whose times are kept for the confidence interval.
const trainTimes = 1 << 16

func newTrainer(w *worker, t training) *trainer {
	sh, m := w.sh, w.sh.model
	d := &trainer{training: t, w: w, l: w.lanes[0], n: len(m.Tensors), times: make([]float64, 0, trainTimes)}
	d.tensors, d.queue = make([]trainTensor, d.n), make([]int, d.n)
	var all float64
	for _, x := range m.Tensors {
		all += float64(x.MultiplyAdds)
	}
	off := uint64(0)
	for i, size := range m.sizes(sh.TensorBytes) {
		// The gradients by the inputs and by the weights cost a forward pass each.
		share := float64(m.Tensors[i].MultiplyAdds) / all
		d.tensors[i] = trainTensor{off: off, size: uint64(size), forward: share / 3, backward: share * 2 / 3}
		if t.priority {
			d.tensors[i].priority = sh.urgency(i, d.n)
		}
		off += uint64(size)
	}
	return d
}

// urgency divides the levels evenly over the tensors: the first needed is the most
// urgent.
func (sh *Shape) urgency(i, tensors int) uint8 {
	levels := max(sh.Levels, 1)
	return uint8(levels - 1 - i*levels/tensors)
}

// run is one phase. The first iteration has nothing to wait for and is not measured;
// the window begins at its end and ends with that of the last.
func (d *trainer) run() error {
	w := d.w
	w.open()
	d.ready = w.begin
	err := d.iterate()
	if err == nil || err == errStop && w.mayFinish() {
		if e := d.drain(); e != nil {
			err = e
		}
	}
	return err
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
		d.l.posted++
		w.end = d.ready
		if k == 0 {
			w.begin = d.ready
		} else {
			took := d.ready - d.last
			w.record(d.ready, took, 0)
			if len(d.times) < cap(d.times) {
				d.times = append(d.times, float64(took))
			}
			w.ops++
		}
		d.last = d.ready
		if w.lim.ops > 0 && w.ops >= w.lim.ops || w.lim.dur > 0 && w.ops > 0 && w.end-w.begin >= int64(w.lim.dur) {
			return nil
		}
	}
}

// forward computes layer after layer, each as soon as its tensor is back.
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

// backward computes the gradients back to front and sends each on its way.
func (d *trainer) backward() error {
	for i := d.n - 1; i >= 0; i-- {
		t := &d.tensors[i]
		if err := d.work(t.backward); err != nil {
			return err
		}
		if err := d.gradient(i); err != nil {
			return err
		}
	}
	return nil
}

// work waits until the accelerator is done with a share of the computation.
func (d *trainer) work(share float64) error {
	d.ready += int64(share * float64(d.compute))
	for now() < d.ready {
		if d.out == 0 && d.queued == 0 {
			d.w.spins = 0 // computing is no stall
		}
		if err := d.turn(); err != nil {
			return err
		}
	}
	return nil
}

// gradient queues a tensor and posts what there is room for.
func (d *trainer) gradient(i int) error {
	d.tensors[i].back, d.tensors[i].sent = false, true
	d.queue[(d.first+d.queued)%d.n] = i
	d.queued++
	return d.flush()
}

// flush posts pushes, each with its pull behind it. A read finds what a write before
// it on the same QP wrote (IBTA 10.8.3.3, RFC 5040 §5.5), and equal priorities keep
// their order in a scheduler.
func (d *trainer) flush() error {
	l := d.l
	for d.queued > 0 {
		i := d.queue[d.first]
		t := &d.tensors[i]
		rx := uint64(l.sh.rxOff())
		l.pair[0] = transports.Op{Kind: transports.KindWrite, Local: t.off, Remote: rx + t.off, Len: uint32(t.size), Priority: t.priority, Slot: uint32(i)}
		l.pair[1] = transports.Op{Kind: transports.KindRead, Local: rx + t.off, Remote: rx + t.off, Len: uint32(t.size), Priority: t.priority, Slot: uint32(i)}
		from := 0
		if d.half {
			from = 1
		}
		if d.out+2-from > l.sh.Depth {
			return nil
		}
		k, err := l.s.Post(l.pair[from:])
		d.out += k
		if from += k; from < 2 {
			d.half = from == 1
			if err == rdma.ErrQueueFull {
				return nil
			}
			return d.w.lost(l, "post "+l.pair[from].Kind.String(), err)
		}
		d.half = false
		d.first = (d.first + 1) % d.n
		d.queued--
	}
	return nil
}

// turn posts what waits and takes what is done.
func (d *trainer) turn() error {
	w, l := d.w, d.l
	if w.stopped() && !w.finishing {
		return errStop
	}
	if d.queued > 0 {
		if err := d.flush(); err != nil {
			return err
		}
	}
	n, err := w.poll(l)
	if err != nil || n == 0 {
		return err
	}
	t := now()
	for i := range w.done[:n] {
		c := &w.done[i]
		if c.Status != rdma.StatusSuccess {
			return statusError(l, *c)
		}
		d.out--
		if c.Kind == transports.KindRead {
			if x := &d.tensors[c.Slot]; x.back || uint64(c.Len) != x.size {
				return failed(l.sh.Point.String(), fmt.Errorf("tensor %d: pulled %d bytes, want %d once", c.Slot, c.Len, x.size))
			}
			d.tensors[c.Slot].at, d.tensors[c.Slot].back = t, true
		}
	}
	return nil
}

// drain brings home what is under way. A phase that was stopped in its first
// iteration sends the rest, so that every tensor has its bytes.
func (d *trainer) drain() error {
	if d.l.posted == 0 {
		for i := d.n - 1; i >= 0; i-- {
			if !d.tensors[i].sent {
				if err := d.gradient(i); err != nil {
					return err
				}
			}
		}
		d.l.posted++
	}
	for d.out > 0 || d.queued > 0 {
		if err := d.turn(); err != nil {
			return err
		}
	}
	return nil
}
