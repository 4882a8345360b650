// Package offload models a light-weight kernel next to Linux (Gerofi et al., EuroMPI'16), which has Linux register.
//
// A detour is a hop between two threads of one kernel, or a time in which the caller is busy. Close ends the thread;
// the registrar below and the registrations are the user's.
package offload

import (
	"fmt"
	"runtime"
	"strings"
	"time"

	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// Config is what a call of the driver costs besides itself. The zero value: nothing.
type Config struct {
	Hop  bool          // another thread makes the call, and the caller waits for it
	Time time.Duration // the caller is busy for so long first
}

// String is "none", "hop", "16µs" or "hop+16µs".
func (c Config) String() string {
	var parts []string
	if c.Hop {
		parts = append(parts, "hop")
	}
	if c.Time > 0 {
		parts = append(parts, c.Time.String())
	}
	if parts == nil {
		return "none"
	}
	return strings.Join(parts, "+")
}

// Parse is the inverse of String; rdma.ErrInvalid for anything else.
func Parse(s string) (c Config, err error) {
	if s == "none" {
		return c, nil
	}
	for part := range strings.SplitSeq(s, "+") {
		if part == "hop" {
			c.Hop = true
			continue
		}
		if c.Time, err = time.ParseDuration(part); err != nil || c.Time <= 0 {
			return Config{}, fmt.Errorf("offload %q: want none, hop, a time above 0, or hop+TIME: %w", s,
				rdma.ErrInvalid)
		}
	}
	return c, nil
}

// Below is what the calls reach in the end; a device, for one.
type Below interface {
	RegMR(pd rdma.PD, buf rdma.Buffer, access rdma.Access) (rdma.MR, error)
}

// Registrar registers by a detour. It is safe for concurrent use.
type Registrar struct {
	below Below
	cfg   Config
	calls chan func()
	done  chan struct{}
}

// Wrap puts the detour before below. The caller closes it.
func Wrap(below Below, cfg Config) *Registrar {
	r := &Registrar{below: below, cfg: cfg}
	if cfg.Hop {
		r.calls, r.done = make(chan func()), make(chan struct{})
		go func() {
			runtime.LockOSThread() // the hop is one between threads, whatever the scheduler would like
			defer close(r.done)
			for f := range r.calls {
				f()
			}
		}()
	}
	return r
}

func (r *Registrar) do(f func() error) error {
	if r.cfg.Time > 0 {
		for until := time.Now().Add(r.cfg.Time); time.Now().Before(until); {
		}
	}
	if r.calls == nil {
		return f()
	}
	answer := make(chan error, 1)
	r.calls <- func() { answer <- f() }
	return <-answer
}

// RegMR registers by the detour, and what it returns is closed by it.
func (r *Registrar) RegMR(pd rdma.PD, buf rdma.Buffer, access rdma.Access) (mr rdma.MR, err error) {
	err = r.do(func() (err error) {
		mr, err = r.below.RegMR(pd, buf, access)
		return err
	})
	if err != nil {
		return nil, err
	}
	return &detoured{mr, r}, nil
}

// Close ends the thread. No registration is made or closed behind it.
func (r *Registrar) Close() error {
	if r.calls != nil {
		close(r.calls)
		<-r.done
		r.calls = nil
	}
	return nil
}

type detoured struct {
	rdma.MR
	by *Registrar
}

func (d *detoured) Close() error { return d.by.do(d.MR.Close) }
