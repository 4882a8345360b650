package wakeup

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

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
