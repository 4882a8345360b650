//go:build netstack

package netstack

import (
	"sync"
	"sync/atomic"
)

// ledger is what all links of the process counted. The open ones count for themselves.
var ledger = links{open: map[*link]struct{}{}}

type links struct {
	mu    sync.Mutex
	open  map[*link]struct{}
	ended Counts
}

var yields atomic.Uint64

func (l *links) enter(k *link) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open[k] = struct{}{}
}

func (l *links) leave(k *link) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.open, k)
	n := k.counts()
	l.ended.add(&n)
}

// Totals are the counts of all stacks of the process.
func Totals() Counts {
	ledger.mu.Lock()
	defer ledger.mu.Unlock()
	sum := ledger.ended
	for k := range ledger.open {
		n := k.counts()
		sum.add(&n)
	}
	sum.Yields = yields.Load()
	return sum
}
