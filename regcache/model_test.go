package regcache

import (
	"bytes"
	"errors"
	"flag"
	"math/rand/v2"
	"testing"

	"github.com/rdmaperf/rdmaperf/internal/expect"
	"github.com/rdmaperf/rdmaperf/regcache/pin"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

var modelSeed = flag.Uint64("modelseed", 1, "of the model test")

// owned is memory that somebody has: what it is to hold, and how it is given back.
type owned struct {
	who   int
	b     rdma.Buffer
	want  []byte
	give  func() error
	frail bool // what a device does there behind give is not held back
}

// held is a region that was got and not put.
type held struct {
	g    *Region
	at   uint64 // of what was asked for
	n    int
	mine *owned
}

// key is what a peer remembers.
type key struct {
	rkey uint32
	at   uint64
	who  int
}

// world is the model: who has which memory, with which bytes.
type world struct {
	t      *testing.T
	m      mover
	rnd    *rand.Rand
	scopes []*Scope
	pools  []*Pool
	store  *Store
	raw    bool // memory of others can be unmapped by system calls
	mem    []*owned
	uses   []held
	keys   []key
	writes [3]int // by good keys, by old ones that were good still, by old ones that were refused
	next   byte
}

// Random maps, unmaps, registrations and transfers, by owners that do not trust each
// other: no byte ever lands in memory of another owner, none is lost, and what a device
// uses is given to nobody.
func TestNoByteLandsInMemoryOfAnotherOwner(t *testing.T) {
	t.Logf("seed %d (-modelseed)", *modelSeed)
	worlds(t, func(t *testing.T, m mover) {
		c, s := over(t, m, Config{MaxRegions: 6})
		_, pins := m.(*pin.Registrar)
		_, monitors := c.source.(*monitored)
		w := &world{t: t, m: m, rnd: rand.New(rand.NewPCG(*modelSeed, 5)), raw: pins && monitors,
			store: NewStore(StoreConfig{Piece: 128 << 10, Keep: 128 << 10})}
		other := expect.Get(c.Scope(0))(t)
		w.scopes = []*Scope{s, other}
		for _, s := range w.scopes {
			p := expect.Get(s.NewPool(PoolConfig{Access: []rdma.Access{rdma.LocalWrite, all}[len(w.pools)], Piece: 256 << 10,
				Deferred: 128 << 10}))(t)
			w.pools = append(w.pools, p)
		}
		steps := []struct {
			share int
			do    func()
		}{{18, w.mapSome}, {14, w.unmapSome}, {25, w.register}, {25, w.transfer}, {14, w.put}, {4, w.replay}}
		for range 1500 {
			n, i := w.rnd.IntN(100), 0
			for ; n >= steps[i].share; i++ {
				n -= steps[i].share
			}
			steps[i].do()
			if t.Failed() {
				t.FailNow()
			}
		}
		w.end()
		t.Logf("%d transfers by good keys, %d by old ones of the same owner, %d refused; %+v", w.writes[0], w.writes[1],
			w.writes[2], c.Counters())
		if w.writes[0] < 100 || w.writes[2] < 5 {
			t.Error("too few: the test shows nothing")
		}
	})
}

func (w *world) mapSome() {
	if len(w.mem) >= 10 {
		return
	}
	o := &owned{who: w.rnd.IntN(2)}
	n := 4096 * (1 + w.rnd.IntN(6))
	var err error
	switch kind := w.rnd.IntN(4); {
	case kind == 0:
		o.b, err = rdma.Alloc(n)
		o.give = func() error { return o.b.Free() }
	case kind == 1:
		o.b, err = w.store.Alloc(n)
		o.give = func() error { return w.store.Free(o.b) }
	case kind == 2 && w.raw:
		raw := rawMap(w.t, 0, n)
		o.b, err = rdma.Foreign(raw)
		o.frail = true
		o.give = func() error {
			rawUnmap(w.t, o.b.Addr(), n) // without a word
			// One that was never registered is watched by nobody; the watcher of another may
			// be about to end it.
			if err := o.b.Free(); !errors.Is(err, rdma.ErrClosed) {
				return err
			}
			return nil
		}
	default:
		p := w.pools[o.who]
		o.b, err = p.Map(n)
		o.give = func() error { return p.Unmap(o.b) }
	}
	expect.OK(w.t, err)
	base, end := o.b.Addr(), o.b.Addr()+uint64(n)
	for _, u := range w.uses {
		if !u.mine.frail && u.mine.give == nil && u.at < end && base < u.at+uint64(u.n) {
			w.t.Fatalf("memory at %#x that a device uses was given to another", base)
		}
	}
	w.next++
	for i := range o.b.Bytes() {
		o.b.Bytes()[i] = w.next
	}
	o.want = bytes.Clone(o.b.Bytes())
	w.mem = append(w.mem, o)
}

func (w *world) unmapSome() {
	if len(w.mem) == 0 {
		return
	}
	i := w.rnd.IntN(len(w.mem))
	o := w.mem[i]
	w.holds(o)
	w.mem = append(w.mem[:i], w.mem[i+1:]...)
	expect.OK(w.t, o.give())
	o.give = nil // nobody's now
}

func (w *world) register() {
	if len(w.mem) == 0 || len(w.uses) >= 12 {
		return
	}
	o := w.mem[w.rnd.IntN(len(w.mem))]
	off := w.rnd.IntN(len(o.want))
	n := 1 + w.rnd.IntN(len(o.want)-off)
	p, err := o.b.Slice(off, n)
	expect.OK(w.t, err)
	g, err := w.scopes[o.who].Get(p, []rdma.Access{rdma.LocalWrite, rdma.RemoteRead, all}[w.rnd.IntN(3)])
	expect.OK(w.t, err)
	w.uses = append(w.uses, held{g, p.Addr(), n, o})
}

// transfer writes by a region in use, whose memory may be gone.
func (w *world) transfer() {
	if len(w.uses) == 0 {
		return
	}
	u := w.uses[w.rnd.IntN(len(w.uses))]
	if !u.g.Access().Has(all) || u.mine.frail && u.mine.give == nil {
		return
	}
	w.next++
	at := u.at + uint64(w.rnd.IntN(u.n))
	if err := w.m.Write(u.g.RKey(), at, []byte{w.next}); err != nil {
		w.t.Fatalf("a write by a region in use, its memory unmapped: %v: %v", u.mine.give == nil, err)
	}
	w.writes[0]++
	if u.mine.give != nil {
		u.mine.want[at-u.mine.b.Addr()] = w.next
	}
	w.all()
}

func (w *world) put() {
	if len(w.uses) == 0 {
		return
	}
	i := w.rnd.IntN(len(w.uses))
	u := w.uses[i]
	w.uses = append(w.uses[:i], w.uses[i+1:]...)
	if u.g.Access().Has(all) && !u.mine.frail { // of such, pinned pages that nobody has may be written to
		w.keys = append(w.keys, key{u.g.RKey(), u.at, u.mine.who})
	}
	if w.rnd.IntN(4) == 0 && u.g.piece == nil {
		expect.OK(w.t, u.g.Revoke())
	} else {
		expect.OK(w.t, u.g.Put())
	}
}

// replay writes by a key that a peer remembers, of a region that it has not any more.
func (w *world) replay() {
	if len(w.keys) == 0 {
		return
	}
	k := w.keys[w.rnd.IntN(len(w.keys))]
	w.next++
	if err := w.m.Write(k.rkey, k.at, []byte{w.next}); err != nil {
		w.writes[2]++
	} else {
		w.writes[1]++
		for _, o := range w.mem { // kept for its owner, who sees it
			if base := o.b.Addr(); o.who == k.who && k.at >= base && k.at < base+uint64(len(o.want)) {
				o.want[k.at-base] = w.next
			}
		}
	}
	w.all()
}

func (w *world) holds(o *owned) {
	if !bytes.Equal(o.b.Bytes(), o.want) {
		w.t.Helper()
		w.t.Fatalf("memory of owner %d at %#x has bytes of somebody else", o.who, o.b.Addr())
	}
}

func (w *world) all() {
	for _, o := range w.mem {
		w.holds(o)
	}
}

func (w *world) end() {
	for len(w.mem) > 0 {
		w.unmapSome()
	}
	for len(w.uses) > 0 {
		w.put()
	}
	for _, p := range w.pools {
		if err := p.Close(); err != nil && !errors.Is(err, rdma.ErrClosed) {
			w.t.Error(err)
		}
	}
	expect.OK(w.t, w.store.Close())
}
