// Package procs keeps GOMAXPROCS above the number of threads that spin: where every P is taken
// by one, whoever is next waits until the runtime preempts it, which is milliseconds, and a
// spinner that offers its CPU to the kernel offers no P with it.
package procs

import (
	"runtime"
	"sync"
)

var spinning struct {
	sync.Mutex
	threads int
	base    int // GOMAXPROCS before the first reservation
}

// Reserve counts threads in that spin; release counts them out again. With the last of them
// GOMAXPROCS is what it was before the first.
func Reserve(threads int) (release func()) {
	add(threads)
	return sync.OnceFunc(func() { add(-threads) })
}

func add(threads int) {
	spinning.Lock()
	defer spinning.Unlock()
	if spinning.threads == 0 {
		spinning.base = runtime.GOMAXPROCS(0)
	}
	spinning.threads += threads
	need := spinning.threads + 1
	if spinning.threads == 0 {
		need = spinning.base
	}
	if now := runtime.GOMAXPROCS(0); now < need || spinning.threads == 0 && now != need {
		runtime.GOMAXPROCS(need) // which stops the world
	}
}
