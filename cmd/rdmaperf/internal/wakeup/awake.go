package wakeup

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// latencyDevice takes the longest latency of idle states, in us, while it is open (PM QoS of the kernel).
const latencyDevice = "/dev/cpu_dma_latency"

// Awake keeps CPUs from falling asleep until it is closed.
type Awake struct {
	device *os.File
	child  *exec.Cmd
	stdin  io.Closer
	how    []string
}

// Hold keeps the CPUs awake by the latency device, and with spinner, which runs [Spin], by threads of the idle class,
// as virtual CPUs halt all the same. Close must be called where the error is nil.
func Hold(spinner *exec.Cmd) (*Awake, error) {
	a := new(Awake)
	var why error
	if f, err := os.OpenFile(latencyDevice, os.O_WRONLY, 0); err != nil {
		why = err
	} else if err := binary.Write(f, binary.NativeEndian, int32(0)); err != nil {
		why = errors.Join(err, f.Close())
	} else {
		a.device = f
		a.how = append(a.how, latencyDevice+" at 0")
	}
	if spinner != nil {
		spinner.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
		in, err := spinner.StdinPipe()
		if err == nil {
			err = spinner.Start()
		}
		if err != nil {
			return nil, errors.Join(fmt.Errorf("keep CPUs awake: %w", err), a.Close())
		}
		a.child, a.stdin = spinner, in
		a.how = append(a.how, "threads of the idle class on every CPU")
	}
	if len(a.how) == 0 {
		return nil, fmt.Errorf("keep CPUs awake: %w", why)
	}
	return a, nil
}

// String says how.
func (a *Awake) String() string { return strings.Join(a.how, " and ") }

// Close lets the CPUs sleep again.
func (a *Awake) Close() error {
	var errs []error
	if a.device != nil {
		errs = append(errs, a.device.Close())
	}
	if a.child != nil {
		errs = append(errs, a.stdin.Close()) // that ends it
		ended := make(chan struct{})
		go func() {
			a.child.Wait() // how it ended says nothing
			close(ended)
		}()
		select {
		case <-ended:
		case <-time.After(5 * time.Second): // arbitrary: it has a CPU when nobody else wants one
			a.child.Process.Kill()
			<-ended
		}
	}
	return errors.Join(errs...)
}

// Spin runs one thread of the idle class on each CPU (sched(7), SCHED_IDLE). It returns when in ends or ctx does.
func Spin(ctx context.Context, in io.Reader, cpus []int) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	runtime.GOMAXPROCS(len(cpus) + 2)
	failed := make(chan error, len(cpus))
	for _, cpu := range cpus {
		go func() { // ends with ctx
			runtime.LockOSThread()
			pin(cpu)
			if err := unix.SchedSetAttr(0, &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_IDLE},
				0); err != nil {
				failed <- fmt.Errorf("keep CPUs awake: SCHED_IDLE: %w", err)
				return
			}
			for ctx.Err() == nil {
				for range 1 << 16 { // between two looks at ctx, some 50 us
				}
			}
		}()
	}
	ended := make(chan struct{})
	go func() { // ends with in, which the caller's parent closes or dies with
		io.Copy(io.Discard, in)
		close(ended)
	}()
	select {
	case err := <-failed:
		return err
	case <-ended:
	case <-ctx.Done():
	}
	return nil
}
