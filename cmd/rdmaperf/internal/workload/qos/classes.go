package qos

import (
	"fmt"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/pairs"
	"github.com/rdmaperf/rdmaperf/transports/lite"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// highSender is whose pattern the records of high have: none of low's slots.
const highSender = depth

// low is a client of the second node that writes to a region of the first.
type low struct {
	c, home *lite.Client
	h, own  lite.Handle
	src     []byte
	at      uint64
	ops     [1]lite.Op
	done    [depth]lite.Done
}

func openLow(p *pairs.Nodes) (l *low, err error) {
	l = new(low)
	if l.home, err = p.Nodes[0].Client(lite.ClientConfig{}); err != nil {
		return nil, err
	}
	if l.own, err = l.home.Malloc(lite.RegionConfig{Name: "low", Size: depth * bulk, Open: lite.PermRead | lite.PermWrite}); err != nil {
		return nil, err
	}
	if l.c, err = p.Nodes[1].Client(lite.ClientConfig{Depth: depth, Wait: lite.WaitAdaptive}); err != nil {
		return nil, err
	}
	if l.h, err = l.c.Map("low", lite.PermWrite, ""); err != nil {
		return nil, err
	}
	if l.src, err = l.c.Alloc(depth * bulk); err != nil {
		return nil, err
	}
	l.at, err = l.c.Offset(l.src)
	return l, err
}

func (l *low) Source(slot int) []byte { return l.src[slot*bulk:][:bulk] }

func (l *low) Write(slot int, at pairs.Place, size int) (bool, error) {
	l.ops[0] = lite.Op{Kind: lite.OpWrite, Handle: l.h, Off: at.Off, Local: l.at + uint64(slot*bulk), Len: uint32(size), Slot: uint32(slot)}
	_, err := l.c.Post(l.ops[:])
	if err == rdma.ErrQueueFull {
		return false, nil
	}
	return err == nil, err
}

func (l *low) Poll(ended func(int)) (int, error) {
	k, err := l.c.Poll(l.done[:])
	for i := range l.done[:k] {
		if s := l.done[i].Status; s != rdma.StatusSuccess {
			return k, fmt.Errorf("low: %w", &rdma.StatusError{WC: rdma.WC{Status: s}})
		}
		ended(int(l.done[i].Slot))
	}
	return k, err
}

func (l *low) Read(at pairs.Place, b []byte) error { return l.home.Read(l.own, at.Off, b) }
func (l *low) Drive() error                        { return nil } // the node does

// openHigh fills a region of the first node with records, and returns what a client of the
// second reads them with.
func openHigh(p *pairs.Nodes) (read func(record int, b []byte) error, err error) {
	home, err := p.Nodes[0].Client(lite.ClientConfig{})
	if err != nil {
		return nil, err
	}
	own, err := home.Malloc(lite.RegionConfig{Name: "high", Size: records * small, Open: lite.PermRead | lite.PermWrite})
	if err != nil {
		return nil, err
	}
	all := make([]byte, records*small)
	for i := range records {
		b := all[i*small:][:small]
		pairs.Fill(b, highSender)
		pairs.Stamp(b, uint64(i))
	}
	if err := home.Write(own, 0, all); err != nil {
		return nil, err
	}
	c, err := p.Nodes[1].Client(lite.ClientConfig{Wait: lite.WaitPoll, Priority: 1})
	if err != nil {
		return nil, err
	}
	h, err := c.Map("high", lite.PermRead, "")
	if err != nil {
		return nil, err
	}
	b, err := c.Alloc(small) // registered, so that nothing is copied on the way
	return func(record int, dst []byte) error {
		err := c.Read(h, uint64(record*small), b)
		copy(dst, b)
		return err
	}, err
}
