package qos

import (
	"fmt"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/drive"
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
	if l.own, err = l.home.Malloc(lite.RegionConfig{Name: "low", Size: depth * bulk,
		Open: lite.PermRead | lite.PermWrite}); err != nil {
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
	l.ops[0] = lite.Op{Kind: lite.OpWrite, Handle: l.h, Off: at.Off, Local: l.at + uint64(slot*bulk), Len: uint32(size),
		Slot: uint32(slot)}
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

// high is a client of the second node that reads records of a region of the first.
type high struct {
	c    *lite.Client
	h    lite.Handle
	b    []byte // registered, so that nothing is copied on the way
	at   uint64
	ops  [1]lite.Op
	done [1]lite.Done
}

// openHigh fills the region with records.
func openHigh(p *pairs.Nodes) (*high, error) {
	home, err := p.Nodes[0].Client(lite.ClientConfig{})
	if err != nil {
		return nil, err
	}
	own, err := home.Malloc(lite.RegionConfig{Name: "high", Size: records * small,
		Open: lite.PermRead | lite.PermWrite})
	if err != nil {
		return nil, err
	}
	all := make([]byte, records*small)
	for i := range records {
		b := all[i*small:][:small]
		drive.FillSender(b, highSender)
		drive.PutNumber(b, uint64(i))
	}
	if err := home.Write(own, 0, all); err != nil {
		return nil, err
	}
	hi := new(high)
	if hi.c, err = p.Nodes[1].Client(lite.ClientConfig{Wait: lite.WaitPoll, Priority: 1}); err != nil {
		return nil, err
	}
	if hi.h, err = hi.c.Map("high", lite.PermRead, ""); err != nil {
		return nil, err
	}
	if hi.b, err = hi.c.Alloc(small); err != nil {
		return nil, err
	}
	hi.at, err = hi.c.Offset(hi.b)
	return hi, err
}

// read reads a record, and waits for it.
func (h *high) read(record int, dst []byte) error {
	err := h.c.Read(h.h, uint64(record*small), h.b)
	copy(dst, h.b)
	return err
}

// post begins to read a record, and came tells whether it is in bytes.
func (h *high) post(record int) error {
	h.ops[0] = lite.Op{Kind: lite.OpRead, Handle: h.h, Off: uint64(record * small), Local: h.at, Len: small}
	_, err := h.c.Post(h.ops[:])
	return err
}

func (h *high) bytes() []byte { return h.b }

func (h *high) came() (bool, error) {
	k, err := h.c.Poll(h.done[:])
	if err == nil && k > 0 && h.done[0].Status != rdma.StatusSuccess {
		err = fmt.Errorf("high: %w", &rdma.StatusError{WC: rdma.WC{Status: h.done[0].Status}})
	}
	return k > 0, err
}
