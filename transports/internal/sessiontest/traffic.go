package sessiontest

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"

	"github.com/rdmaperf/rdmaperf/transports"
)

// Areas of the window in mixed traffic: sources are constant, inbox regions are
// written by the peer, outbox regions by own reads.
const (
	mixRegions = 12
	mixRegion  = 40 << 10
	mixSource  = 256 << 10
	mixInbox   = mixSource
	mixOutbox  = mixInbox + mixRegions*mixRegion
	mixWindow  = mixOutbox + mixRegions*mixRegion
)

var mixSizes = []int{0, 1, 7, 15, 16, 17, 64, 255, 256, 257, 1000, 4079, 4080, 4081, 4095, 4096, 4097, 8192, 16383,
	16384, 16385, 32768, mixRegion}

func mixed(t *testing.T, open Open) {
	const seed = 11
	r := rand.New(rand.NewPCG(seed, seed))
	p := connect(t, open, transports.Config{Window: mixWindow, SendDepth: mixRegions + 1, RecvDepth: mixRegions + 1,
		ReadDepth: 3, MaxInline: min(128, open16(open, t))})
	ends := []*end{p.near, p.far}
	var want [2][]byte
	for i, e := range ends {
		scribble(e.s.Local()[:mixSource], i)
		want[i] = bytes.Clone(e.s.Local())
	}
	for round := range 40 {
		expect := [2]int{}
		for i, e := range ends {
			peer := ends[1-i]
			var recvs, ops []transports.Op
			for k := range mixRegions {
				op := p.draw(r, k)
				src := want[i][op.Local:][:op.Len]
				switch op.Kind {
				case transports.KindSend:
					recvs = append(recvs,
						transports.Op{Kind: transports.KindRecv, Local: mixInbox + uint64(k)*mixRegion, Len: mixRegion,
							Slot: 100 + uint32(k)})
					copy(want[1-i][mixInbox+k*mixRegion:], src)
				case transports.KindWriteImm:
					recvs = append(recvs, transports.Op{Kind: transports.KindRecv, Slot: 100 + uint32(k)})
					copy(want[1-i][op.Remote:], src)
				case transports.KindWrite:
					copy(want[1-i][op.Remote:], src)
				case transports.KindRead:
					copy(want[i][op.Local:], want[1-i][op.Remote:][:op.Len])
				}
				if op.Flags&transports.Unsignaled == 0 {
					expect[i]++
				}
				ops = append(ops, op)
			}
			expect[1-i] += len(recvs)
			peer.post(recvs...)
			p.postAll(e, ops)
		}
		what := fmt.Sprintf("seed %d, round %d", seed, round)
		for i, e := range ends {
			p.take(e, expect[i])
		}
		// Unsignaled ops may still be under way.
		p.barrier()
		for i, e := range ends {
			if len(e.dones) != 0 {
				t.Fatalf("%s: %s has %v left over", what, e.name, e.dones)
			}
			same(t, what+", "+e.name+" window", e.s.Local(), want[i])
		}
	}
}

func (p *pair) draw(r *rand.Rand, k int) transports.Op {
	kinds := []transports.Kind{transports.KindSend, transports.KindWrite, transports.KindWriteImm, transports.KindRead}
	op := transports.Op{Kind: transports.KindSend, Slot: uint32(k), Len: uint32(mixSizes[r.IntN(len(mixSizes))])}
	if kind := kinds[r.IntN(len(kinds))]; p.caps.Kinds.Has(kind) {
		op.Kind = kind
	}
	source := uint64(r.IntN(mixSource - mixRegion))
	op.Local, op.Remote = source, mixInbox+uint64(k)*mixRegion
	if op.Kind == transports.KindRead {
		op.Local, op.Remote = mixOutbox+uint64(k)*mixRegion, source
		// An unsignaled read has no completion to wait for, and the barrier would not prove it done.
		return op
	}
	if r.IntN(3) == 0 {
		op.Flags |= transports.Unsignaled
	}
	if op.Len <= 128 && p.caps.MaxInline >= 128 && r.IntN(2) == 0 {
		op.Flags |= transports.Inline
	}
	return op
}

func twoThreads(t *testing.T, open Open) {
	p := connect(t, open, ordinary)
	for _, e := range []*end{p.near, p.far} { // before anybody sends
		e.post(transports.Op{Kind: transports.KindRecv, Local: inbox, Len: inbox})
	}
	errs := make(chan error, 1)
	go func() { errs <- exchange(p.far, 1) }()
	near, far := exchange(p.near, 0), <-errs // both are out before either is closed
	ok(t, "near", near)
	ok(t, "far", far)
}

const inbox = 32 << 10

func exchange(e *end, parity int) error {
	const messages = 600
	win := e.s.Local()
	mine := make([]byte, inbox)
	fill := func(b []byte, i int) []byte {
		b = b[:8+i*61%20000]
		scribble(b[8:], i)
		binary.BigEndian.PutUint64(b, uint64(i))
		return b
	}
	arrived, sent := 0, 0
	var last transports.Done
	deadline := time.Now().Add(waitLimit)
	until := func(what string, cond func() bool) error {
		for !cond() {
			n, err := e.s.Poll(e.buf)
			if err != nil {
				return err
			}
			for _, d := range e.buf[:n] {
				if d.Status != 0 {
					return fmt.Errorf("%v: %v", d.Kind, d.Status)
				}
				if d.Kind == transports.KindRecv {
					arrived, last = arrived+1, d
				} else {
					sent++
				}
			}
			if n == 0 {
				if time.Now().After(deadline) {
					return fmt.Errorf("no %s after %v", what, waitLimit)
				}
				runtime.Gosched()
			}
		}
		return nil
	}
	for i := range messages {
		if i%2 == parity {
			msg := fill(win, i)
			if _, err := e.s.Post([]transports.Op{{Kind: transports.KindSend, Len: uint32(len(msg))}}); err != nil {
				return err
			}
			if err := until("completed send", func() bool { return sent == i/2+1 }); err != nil {
				return err
			}
			continue
		}
		if err := until(fmt.Sprintf("message %d", i), func() bool { return arrived == i/2+1 }); err != nil {
			return err
		}
		if got, want := win[inbox:][:last.Len], fill(mine, i); !bytes.Equal(got, want) {
			return fmt.Errorf("message %d: %d bytes that differ from the %d sent", i, len(got), len(want))
		}
		if _, err := e.s.Post([]transports.Op{{Kind: transports.KindRecv, Local: inbox, Len: inbox}}); err != nil {
			return err
		}
	}
	return nil
}
