// Package pairstest is a far end whose every time is given. It runs in a bubble of [testing/synctest]: a poll in vain
// sleeps until something ends, and nothing else takes any time. Data arrives when it is posted.
package pairstest

import (
	"time"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/pairs"
)

// Link is a [pairs.Target]: each write takes Each of the link, one after the other, and ends after Trip more.
type Link struct {
	Each time.Duration
	Trip func(n int) time.Duration // of the n-th write, from 0

	Bend func(n int, b []byte) []byte // what arrives of the n-th write; nil: what was sent

	src    [][]byte
	region int // bytes of one
	mem    []byte
	writes int
	free   time.Time // when the last write has left
	under  []flight
}

type flight struct {
	slot int
	ends time.Time
}

// New has so many slots of size bytes, and regions of each bytes at the far end.
func New(slots, size, regions, each int) *Link {
	l := &Link{region: each, mem: make([]byte, regions*each)}
	for range slots {
		l.src = append(l.src, make([]byte, size))
	}
	return l
}

func (l *Link) Source(slot int) []byte { return l.src[slot] }

func (l *Link) Write(slot int, at pairs.Place, size int) (bool, error) {
	b := l.src[slot][:size]
	if l.Bend != nil {
		b = l.Bend(l.writes, append([]byte(nil), b...))
	}
	copy(l.mem[at.Region*l.region+int(at.Off):], b)
	if now := time.Now(); l.free.Before(now) {
		l.free = now
	}
	l.free = l.free.Add(l.Each)
	l.under = append(l.under, flight{slot, l.free.Add(l.Trip(l.writes))})
	l.writes++
	return true, nil
}

func (l *Link) Poll(ended func(slot int)) (n int, err error) {
	if len(l.under) == 0 {
		time.Sleep(l.Each)
		return 0, nil
	}
	first := l.under[0].ends
	for _, f := range l.under {
		if f.ends.Before(first) {
			first = f.ends
		}
	}
	time.Sleep(time.Until(first))
	left := l.under[:0]
	for _, f := range l.under {
		if f.ends.After(first) {
			left = append(left, f)
			continue
		}
		ended(f.slot)
		n++
	}
	l.under = left
	return n, nil
}

func (l *Link) Read(at pairs.Place, b []byte) error {
	copy(b, l.mem[at.Region*l.region+int(at.Off):])
	return nil
}

// Drive takes a while, so that a wait for what does not come ends.
func (l *Link) Drive() error { time.Sleep(time.Second); return nil }
