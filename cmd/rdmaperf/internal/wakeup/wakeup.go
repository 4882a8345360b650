// Package wakeup measures how long the machine takes to wake a thread, and keeps its CPUs from sleeping on request.
// A stack that sleeps for completions pays this time for each message, and one that polls does not: without this figure
// their ratio says as much about the machine. Wake-ups across NUMA nodes are not told apart.
package wakeup

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"slices"
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

const (
	// samples are enough for a p99 of two; more would delay every run. Arbitrary.
	samples = 150
	// idle is above the residency that any idle state of cpuidle asks for.
	idle = time.Millisecond
)

// Figures are the wake-up of one machine.
type Figures struct {
	P50, P99, Max time.Duration
	Samples       int
}

// Measure wakes a thread that is blocked in read(2) of an eventfd and tells how long it takes from before the write
// until the reader has read the clock. It takes about a quarter of a second.
func Measure(ctx context.Context, cpus []int) (Figures, error) {
	fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC)
	if err != nil {
		return Figures{}, fmt.Errorf("measure the wake-up of a thread: eventfd: %w", err)
	}
	defer unix.Close(fd)
	woken := make(chan int64, 1)
	go reader(fd, cpuOf(cpus, 0), woken)
	defer func() { // the reader ends at the number 2, whatever it did before
		signal(fd, 2)
		for range woken {
		}
	}()

	writer := make(chan []int64, 1)
	go func() { // ends by itself, after samples or with ctx
		runtime.LockOSThread() // never unlocked: the thread ends with its affinity
		pin(cpuOf(cpus, 1))
		var took []int64
		for range samples {
			if ctx.Err() != nil {
				break
			}
			time.Sleep(idle)
			begun := now()
			signal(fd, 1)
			t, ok := <-woken
			if !ok {
				break // the reader could not read
			}
			took = append(took, t-begun)
		}
		writer <- took
	}()
	took := <-writer
	if len(took) < samples {
		return Figures{}, fmt.Errorf("measure the wake-up of a thread: %w",
			cmp.Or(ctx.Err(), errors.New("an eventfd cannot be read")))
	}
	slices.Sort(took)
	at := func(percent int) time.Duration { return time.Duration(took[(len(took)*percent+99)/100-1]) }
	return Figures{P50: at(50), P99: at(99), Max: time.Duration(took[len(took)-1]), Samples: len(took)}, nil
}

// reader says when it woke, until the eventfd holds more than 1.
func reader(fd, cpu int, woken chan<- int64) {
	defer close(woken)
	runtime.LockOSThread() // never unlocked, as above
	pin(cpu)
	var b [8]byte
	for {
		n, err := unix.Read(fd, b[:])
		t := now()
		switch {
		case err == unix.EINTR:
			continue
		case err != nil || n != len(b) || binary.NativeEndian.Uint64(b[:]) != 1:
			return
		}
		woken <- t
	}
}

// signal adds n to the eventfd; that cannot fail before it holds 2^64-2 (eventfd(2)).
func signal(fd int, n uint64) {
	var b [8]byte
	binary.NativeEndian.PutUint64(b[:], n)
	for {
		if _, err := unix.Write(fd, b[:]); err != unix.EINTR {
			return
		}
	}
}

func now() int64 {
	var ts unix.Timespec
	unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts) // never fails for this clock
	return ts.Nano()
}

func cpuOf(cpus []int, i int) int {
	if len(cpus) == 0 {
		return -1
	}
	return cpus[len(cpus)-1-i%len(cpus)]
}

// pin binds the calling thread. Where that is not allowed, the kernel chooses.
func pin(cpu int) {
	if cpu < 0 {
		return
	}
	var set unix.CPUSet
	set.Set(cpu)
	unix.SchedSetaffinity(0, &set)
}
