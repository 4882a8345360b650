package conform

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

func events(dev rdma.Device, num uint32) (of []rdma.Event) {
	for ev, more := dev.Event(); more; ev, more = dev.Event() {
		if ev.QPNum == num {
			of = append(of, ev)
		}
	}
	return of
}

func (e *Env) expectEvent(dev rdma.Device, typ rdma.EventType, num uint32) {
	e.waitFor("asynchronous event: "+typ.String(), func() bool {
		return slices.ContainsFunc(events(dev, num), func(ev rdma.Event) bool { return ev.Type == typ })
	})
}

func (e *Env) expectNoEvent(dev rdma.Device, typ rdma.EventType, num uint32, when string) {
	for _, ev := range events(dev, num) {
		if ev.Type == typ {
			e.failf("no event "+typ.String()+" "+when, "one, detail %#x", ev.Detail)
		}
	}
}

// waitCQ blocks in CQ.Wait for at most d while only the other side is polled; what names the event.
func (e *Env) waitCQ(b *cqBox, d time.Duration, what string) bool {
	was := b.asleep
	b.asleep = true
	defer func() { b.asleep = was }()
	ctx, cancel := context.WithTimeout(e.ctx, d)
	defer cancel()
	err := e.beside("wait on "+b.name+", "+what+",", func() error { return b.cq.Wait(ctx) })
	if err != nil && !errors.Is(err, context.DeadlineExceeded) {
		e.failf("wait on "+b.name+" ends with the event or with the context", "%v", err)
	}
	return err == nil
}

func (e *Env) expectWake(b *cqBox, why string) {
	if !e.waitCQ(b, 5*time.Second, why) {
		e.failf("completion event: "+why, "none in 5s")
	}
}

func (e *Env) expectSleep(b *cqBox, why string) {
	if e.waitCQ(b, quietTime, why) {
		e.failf("no completion event: "+why, "an event")
	}
}

func (e *Env) arm(b *cqBox, solicitedOnly bool) { e.must("arm "+b.name, b.cq.Arm(solicitedOnly)) }

// task is a call that blocks while the case goes on polling; the Env joins it.
type task struct {
	what string
	err  error
	done chan struct{}
}

func (e *Env) start(what string, f func() error) *task {
	t := &task{what: what, done: make(chan struct{})}
	e.tasks = append(e.tasks, t)
	go func() {
		defer close(t.done)
		t.err = e.call(f)
	}()
	return t
}

func (t *task) finished() bool {
	select {
	case <-t.done:
		return true
	default:
		return false
	}
}

func (t *task) join(d time.Duration) bool {
	select {
	case <-t.done:
		return true
	case <-time.After(d):
		return false
	}
}

func (e *Env) await(t *task) error {
	e.wait(func() string { return t.what + " returns" }, t.finished)
	return t.err
}

func (e *Env) beside(what string, f func() error) error { return e.await(e.start(what, f)) }
