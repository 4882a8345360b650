package conform

import "time"

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
