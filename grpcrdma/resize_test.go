package grpcrdma

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rdmaperf/rdmaperf/grpcrdma/bpev"
	"github.com/rdmaperf/rdmaperf/internal/onepeer"
)

// eventually tidies both sides, as time does, until ok.
func eventually(t *testing.T, e *pair, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(testTimeout); !ok(); runtime.Gosched() {
		if time.Now().After(end) {
			t.Fatalf("%s: %+v, %+v", what, e.a.Stats(), e.b.Stats())
		}
		e.a.tidy()
		e.b.tidy()
	}
}

// bulk moves n bytes from one end to the other.
func bulk(t *testing.T, from, to *Conn, n int) {
	t.Helper()
	want := pattern(n, byte(n))
	sent := make(chan error, 1)
	go func() { _, err := from.Write(want); sent <- err }()
	if got := readFull(t, to, n); !bytes.Equal(got, want) {
		t.Fatal("bytes differ")
	}
	must(t, <-sent)
}

// A ring and a send buffer grow in the direction that needs it, and are small again when little comes, whether
// somebody reads or nobody does; through all of that the stream is what was written.
func TestRingsGrowWithBulkAndShrinkWithoutIt(t *testing.T) {
	for _, p := range providers {
		for _, mode := range []bpev.Mode{bpev.BPEV, bpev.Event} {
			for _, reads := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s/%v/reader %v", p.name, mode, reads), func(t *testing.T) {
					cfg := Config{Polling: bpev.Config{Mode: mode}, Arrival: ArrivalNotice}
					e := newPair(t, p, cfg, cfg)
					c1, c2 := e.conn()
					for _, c := range []*Conn{c1, c2} {
						must(t, c.SetDeadline(time.Now().Add(testTimeout)))
					}
					idle := e.a.cfg.memory()
					if idle > 64<<10 || c1.Memory() != idle || c2.Memory() != idle {
						t.Fatalf("%d and %d bytes, idle ones %d", c1.Memory(), c2.Memory(), idle)
					}
					small := func() bool { return c1.Memory() == idle && c2.Memory() == idle }
					for round := range 3 {
						bulk(t, c1, c2, 1<<20)
						bulk(t, c2, c1, 100) // it carries the offer, where a Write was in progress
						bulk(t, c1, c2, 1<<20)
						if a, b := c1.Memory()-idle, c2.Memory()-idle; a != defaultRing/2+sendSlack || b != defaultRing {
							t.Fatalf("round %d: the writer has %d bytes more, the reader %d", round, a, b)
						} else if n := e.a.ConnMemory(); n != idle+a {
							t.Errorf("%d bytes a connection", n)
						}
						if reads {
							next := make(chan byte, 2)
							for _, c := range []*Conn{c1, c2} {
								go func() { next <- readFull(t, c, 1)[0] }()
							}
							eventually(t, e, "large beside a reader", small)
							for _, c := range []*Conn{c1, c2} {
								_, err := c.Write([]byte{7})
								must(t, err)
							}
							if a, b := <-next, <-next; a != 7 || b != 7 {
								t.Errorf("read %d and %d", a, b)
							}
						}
						eventually(t, e, "large while nobody reads", small)
						bulk(t, c1, c2, 1000)
						bulk(t, c2, c1, 1<<20)
						eventually(t, e, "large the other way", small)
					}
				})
			}
		}
	}
}

// Bytes that nobody has read keep their ring, and lie before what comes in the next one.
func TestWhatIsUnreadOutlivesTheMove(t *testing.T) {
	onEach(t, func(t *testing.T, p provider) {
		cfg := Config{Arrival: ArrivalNotice}
		e := newPair(t, p, cfg, cfg)
		c1, c2 := e.conn()
		bulk(t, c1, c2, 1<<20)
		bulk(t, c2, c1, 1)
		bulk(t, c1, c2, 1<<20)
		want := pattern(20<<10, 3)
		_, err := c1.Write(want[:10<<10])
		must(t, err)
		eventually(t, e, "nothing was offered", func() bool { return c1.tx.peer.Load().size == firstRing })
		eventually(t, e, "the send buffer is still large", func() bool { return c1.Memory() == e.a.cfg.memory() })
		if c2.Memory() == e.b.cfg.memory() {
			t.Error("the ring with unread bytes is gone")
		}
		_, err = c1.Write(want[10<<10:])
		must(t, err)
		if got := readFull(t, c2, len(want)); !bytes.Equal(got, want) {
			t.Error("bytes differ")
		}
		eventually(t, e, "the large ring stays", func() bool { return c2.Memory() == e.b.cfg.memory() })
	})
}

// Both directions grow and shrink again and again while records of all sizes go through.
func TestStreamsArriveWholeThroughMoves(t *testing.T) {
	onEach(t, func(t *testing.T, p provider) {
		const seed, parts, size = 7, 12, 1 << 20
		t.Logf("seed %d", seed)
		e := newPair(t, p, Config{Arrival: ArrivalNotice}, Config{Arrival: ArrivalNotice})
		c1, c2 := e.conn()
		var work, tidying sync.WaitGroup
		for i, c := range []*Conn{c1, c2} {
			must(t, c.SetDeadline(time.Now().Add(testTimeout)))
			want, other := pattern(parts*size, byte(i)), pattern(parts*size, byte(1-i))
			work.Go(func() {
				rng := rand.New(rand.NewPCG(seed, uint64(i)))
				for k := range parts { // bulk, and what leaves large rings
					if err := send(c, want[k*size:][:size], []int{300 << 10, 8 << 10}[k%2], rng); err != nil {
						t.Errorf("side %d: %v", i, err)
						return
					}
				}
			})
			work.Go(func() {
				got, err := receive(c, parts*size, 64<<10, rand.New(rand.NewPCG(seed, uint64(2+i))))
				if err != nil || !bytes.Equal(got, other) {
					t.Errorf("side %d: %d bytes, equal %v, %v", i, len(got), bytes.Equal(got, other), err)
				}
			})
		}
		var over atomic.Bool
		var moves [2]int
		tidying.Go(func() {
			var had [2]int
			for !over.Load() {
				e.a.tidy()
				e.b.tidy()
				for i, c := range []*Conn{c1, c2} {
					if m := c.Memory(); m != had[i] {
						had[i] = m
						moves[i]++
					}
				}
				runtime.Gosched()
			}
		})
		work.Wait()
		over.Store(true)
		tidying.Wait()
		if moves[0] < parts || moves[1] < parts {
			t.Errorf("%d changes of size, too few", moves)
		}
	})
}

// A send buffer that the device may still read from stays.
func TestASendBufferWithWorkUnderWayStays(t *testing.T) {
	onEach(t, func(t *testing.T, p provider) {
		cfg := Config{Polling: bpev.Config{Mode: bpev.Event}}
		e := newPair(t, p, cfg, cfg)
		c1, c2 := e.conn()
		bulk(t, c1, c2, 1<<20)
		bulk(t, c2, c1, 1)
		bulk(t, c1, c2, 1<<20)
		eventually(t, e, "it does not move", func() bool { return c1.tx.moves.to.Load() == c1.tx.first })
		c1.tx.bufHead.Add(unit) // as a write without its completion
		for range 10 {
			e.a.tidy()
		}
		if c1.Memory() == e.a.cfg.memory() {
			t.Error("the send buffer is gone")
		}
		c1.tx.bufFreed.Add(unit)
		eventually(t, e, "it stays for ever", func() bool { return c1.Memory() == e.a.cfg.memory() })
	})
}

// Without memory for large rings the small ones carry bulk.
func TestBulkGoesThroughSmallRingsWithoutMemory(t *testing.T) {
	onEach(t, func(t *testing.T, p provider) {
		cfg := Config{Arrival: ArrivalNotice}
		e := newPair(t, p, cfg, cfg)
		c1, c2 := e.conn()
		must(t, e.b.store.Close())
		bulk(t, c1, c2, 1<<20)
		if c2.Memory() != e.b.cfg.memory() {
			t.Errorf("%d bytes from a closed store", c2.Memory())
		}
		must(t, e.a.store.Close()) // there is a ring again, but no send buffer
		bulk(t, c2, c1, 1<<20)
	})
}

// Connections that end in the middle of a move leave nothing behind.
func TestCloseAmidMovesFreesAll(t *testing.T) {
	onEach(t, func(t *testing.T, p provider) {
		cfg := Config{Arrival: ArrivalNotice}
		e := newPair(t, p, cfg, cfg)
		for i := range 20 {
			c1, c2 := e.conn()
			done := make(chan struct{})
			go func() {
				defer close(done)
				c1.Write(pattern(4<<20, 1))
			}()
			buf := make([]byte, 64<<10)
			for range i * 4 {
				if _, err := c2.Read(buf); err != nil {
					break
				}
				if i%2 == 0 {
					c2.Write(buf[:1])
				}
				e.b.tidy()
			}
			must(t, c2.Close())
			<-done
			must(t, c1.Close())
		}
		if a, b := e.a.Stats(), e.b.Stats(); a.Memory != 0 || b.Memory != 0 {
			t.Errorf("left over: %+v, %+v", a, b)
		}
	})
}

// A fault in what tidy does for one peer ends that connection, and Close finds no lock held.
func TestAFaultWhileTidyingEndsOneConnection(t *testing.T) {
	onEach(t, func(t *testing.T, p provider) {
		cfg := Config{Polling: bpev.Config{Mode: bpev.Event}}
		e := newPair(t, p, cfg, cfg)
		c1, c2 := e.conn()
		c3, c4 := e.conn()
		_, err := c1.Write([]byte{1})
		must(t, err)
		c2.rx.ring = nil
		eventually(t, e, "no fault", func() bool { return c2.err.Load() != nil })
		var fault *onepeer.Fault
		if !errors.As(*c2.err.Load(), &fault) {
			t.Errorf("ended by %v", *c2.err.Load())
		}
		must(t, c2.Close())
		bulk(t, c3, c4, 100)
	})
}
