// Package procs keeps GOMAXPROCS above the number of threads that spin, so that the others need not wait for
// preemption.
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

// Reserve counts threads in that spin; release counts them out, and the last restores GOMAXPROCS.
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
