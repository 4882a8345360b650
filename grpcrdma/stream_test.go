package grpcrdma

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/rdmaperf/rdmaperf/grpcrdma/bpev"
	"github.com/rdmaperf/rdmaperf/softstack/iwarp"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// send writes data in random pieces, receive reads n bytes in random pieces.
func send(c net.Conn, data []byte, most int, rng *rand.Rand) error {
	for len(data) > 0 {
		k := min(1+rng.IntN(most), len(data))
		n, err := c.Write(data[:k])
		if err != nil || n != k {
			return errors.Join(err, io.ErrShortWrite)
		}
		data = data[k:]
	}
	return nil
}

func receive(c net.Conn, n, most int, rng *rand.Rand) ([]byte, error) {
	b := make([]byte, n)
	for got := 0; got < n; {
		k, err := c.Read(b[got:min(n, got+1+rng.IntN(most))])
		if err != nil {
			return b[:got], err
		}
		got += k
	}
	return b, nil
}

// Both directions at once, through rings of different sizes that wrap many times.
func TestStreamsArriveWhole(t *testing.T) {
	everywhere(t, func(t *testing.T, p provider, cfg Config) {
		streams(t, p, cfg, minRing, 4*minRing, 512<<10, 3*minRing)
	})
}

// Records of many pages, each sent without a completion of its own, from a send buffer
// that is used again and again.
func TestLargeRecordsArriveWhole(t *testing.T) {
	everywhere(t, func(t *testing.T, p provider, cfg Config) {
		streams(t, p, cfg, defaultRing, defaultRing, 4<<20, 4<<20)
	})
}

// streams sends size bytes in both directions, in writes of up to longest.
func streams(t *testing.T, p provider, cfg Config, near, far, size, longest int) {
	ca, cb := cfg, cfg
	ca.Ring, cb.Ring = near, far
	e := newPair(t, p, ca, cb)
	c1, c2 := e.conn()
	var wg sync.WaitGroup
	for i, c := range []*Conn{c1, c2} {
		must(t, c.SetDeadline(time.Now().Add(testTimeout)))
		rng := rand.New(rand.NewPCG(1, uint64(i)))
		want, other := pattern(size, byte(i)), pattern(size, byte(1-i))
		wg.Go(func() {
			if err := send(c, want, longest, rand.New(rand.NewPCG(2, uint64(i)))); err != nil {
				t.Errorf("side %d: %v", i, err)
			}
		})
		wg.Go(func() {
			got, err := receive(c, size, near, rng)
			if err != nil || !bytes.Equal(got, other) {
				t.Errorf("side %d: %d bytes, equal %v, %v", i, len(got), bytes.Equal(got, other), err)
			}
		})
	}
	wg.Wait()
	if c1.rx.watched {
		for i, b := range c2.rx.ring {
			if b != 0 {
				t.Fatalf("byte %d of a watched ring is %#x after all was read", i, b)
			}
		}
	}
	// Credit returns at half a ring, so no oftener than that; the first opens the stream.
	for _, c := range []*Conn{c1, c2} {
		consumed := c.rx.pos.Load()
		most := consumed/uint64(min(len(c.rx.ring), firstRing)/2) + c.tx.noticesTaken.Load()/(noticeDepth/2) + 1
		if c.tx.creditsSent > most {
			t.Errorf("%d credits for %d bytes and %d notices, at most %d", c.tx.creditsSent, consumed,
				c.tx.noticesTaken.Load(), most)
		}
	}
}

// A writer whose peer does not read stops at the ring's size, keeps its deadline,
// and goes on where it stopped.
func TestSlowReaderHoldsTheWriter(t *testing.T) {
	everywhere(t, func(t *testing.T, p provider, cfg Config) {
		cfg.Ring = minRing
		e := newPair(t, p, cfg, cfg)
		c1, c2 := e.conn()
		data := pattern(3*minRing, 9)
		var n int
		var err error
		for n == 0 && (err == nil || isTimeout(err)) { // again if the deadline was over before it began
			must(t, c1.SetWriteDeadline(time.Now().Add(20*time.Millisecond)))
			n, err = c1.Write(data)
		}
		if !errors.Is(err, os.ErrDeadlineExceeded) || n == 0 || n >= minRing {
			t.Fatalf("wrote %d bytes into a ring of %d: %v", n, minRing, err)
		}
		if ne, ok := err.(net.Error); !ok || !ne.Timeout() {
			t.Errorf("%T is no timeout", err)
		}
		must(t, c1.SetWriteDeadline(time.Time{}))
		done := make(chan error, 1)
		go func() { _, err := c1.Write(data[n:]); done <- err }()
		if got := readFull(t, c2, len(data)); !bytes.Equal(got, data) {
			t.Error("the data differs")
		}
		must(t, <-done)
	})
}

func TestOrderlyClose(t *testing.T) {
	everywhere(t, func(t *testing.T, p provider, cfg Config) {
		e := newPair(t, p, cfg, cfg)
		c1, c2 := e.conn()
		data := pattern(20_000, 5) // fits into the first ring
		_, err := c1.Write(data)
		must(t, err)
		must(t, c1.Close())
		must(t, c1.Close())
		if got := readFull(t, c2, len(data)); !bytes.Equal(got, data) {
			t.Error("the data differs")
		}
		for range 2 {
			if n, err := c2.Read(make([]byte, 1)); n != 0 || err != io.EOF {
				t.Errorf("behind the end: %d, %v", n, err)
			}
		}
		must(t, c2.SetWriteDeadline(time.Now().Add(testTimeout)))
		for err = nil; err == nil; {
			_, err = c2.Write(data)
		}
		if errors.Is(err, os.ErrDeadlineExceeded) {
			t.Error("a writer does not learn that its peer is gone")
		}
		if _, err := c1.Write(data); !errors.Is(err, net.ErrClosed) {
			t.Errorf("write after Close: %v", err)
		}
		if _, err := c1.Read(data); !errors.Is(err, net.ErrClosed) {
			t.Errorf("read after Close: %v", err)
		}
		if err := c1.SetDeadline(time.Time{}); !errors.Is(err, net.ErrClosed) {
			t.Errorf("deadline after Close: %v", err)
		}
	})
}

// killer is a device whose sudden death the tests cause.
type killer interface{ Kill() }

func TestAbruptEnd(t *testing.T) {
	everywhere(t, func(t *testing.T, p provider, cfg Config) {
		e := newPair(t, p, cfg, cfg)
		mortal, ok := e.db.(killer)
		if !ok {
			return // a device of the kernel dies with its process: package interop kills one
		}
		c1, c2 := e.conn()
		_, err := c1.Write([]byte("last words"))
		must(t, err)
		if got := readFull(t, c2, 10); string(got) != "last words" {
			t.Errorf("%q", got)
		}
		// The side whose own device dies learns at once, asleep or not.
		got := make(chan error, 1)
		must(t, c2.SetDeadline(time.Now().Add(testTimeout)))
		go func() { _, err := c2.Read(make([]byte, 1)); got <- err }()
		time.Sleep(time.Millisecond)
		mortal.Kill()
		if err := <-got; err == nil || err == io.EOF || errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("own device died: %v", err)
		}
		// The other side by the end of the stream, or by the next thing it sends.
		must(t, c1.SetDeadline(time.Now().Add(testTimeout)))
		for err = nil; err == nil; {
			_, err = c1.Write(make([]byte, 100))
		}
		if errors.Is(err, os.ErrDeadlineExceeded) {
			t.Error("a writer does not learn that its peer died")
		}
		if _, err := c1.Read(make([]byte, 1)); err == nil || err == io.EOF || errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("peer's device died: %v", err)
		}
	})
}

// Where completions prove delivery, a reader that only waits learns of the death
// of its peer from its probes.
func TestWaitingReaderProbesItsPeer(t *testing.T) {
	for _, cfg := range configs {
		t.Run(configName(cfg), func(t *testing.T) {
			cfg.Probe = 5 * time.Millisecond
			e := newPair(t, providers[0], cfg, cfg)
			c1, c2 := e.conn()
			must(t, c1.SetDeadline(time.Now().Add(testTimeout)))
			got := make(chan error, 1)
			go func() { _, err := c1.Read(make([]byte, 1)); got <- err }()
			time.Sleep(30 * time.Millisecond) // several probes, to a peer that lives
			_, err := c2.Write([]byte{1})
			must(t, err)
			must(t, <-got)
			go func() { _, err := c1.Read(make([]byte, 1)); got <- err }()
			e.db.(killer).Kill()
			if err := <-got; err == nil || isTimeout(err) {
				t.Errorf("%v", err)
			}
		})
	}
}

func TestNetCloseEndsEverything(t *testing.T) {
	everywhere(t, func(t *testing.T, p provider, cfg Config) {
		e := newPair(t, p, cfg, cfg)
		c1, c2 := e.conn()
		errs := make(chan error, 3)
		go func() { _, err := c1.Read(make([]byte, 1)); errs <- err }()
		go func() { _, err := c2.Read(make([]byte, 1)); errs <- err }()
		go func() { _, err := e.l.Accept(); errs <- err }()
		time.Sleep(5 * time.Millisecond)
		must(t, e.b.Close())
		must(t, e.a.Close())
		for range 3 {
			select {
			case err := <-errs:
				if err == nil {
					t.Error("no error")
				}
			case <-time.After(testTimeout):
				t.Fatal("somebody hangs")
			}
		}
		if _, err := e.a.DialContext(t.Context(), "x:1"); !errors.Is(err, net.ErrClosed) {
			t.Errorf("dial: %v", err)
		}
		if _, err := e.b.Listen(t.Context(), p.addr); !errors.Is(err, net.ErrClosed) {
			t.Errorf("listen: %v", err)
		}
		if s := e.a.Stats(); s.Conns != 0 || s.Memory != 0 || s.Pooled != 0 {
			t.Errorf("left over: %+v", s)
		}
	})
}

func TestMemoryIsBoundedAndReported(t *testing.T) {
	onEach(t, func(t *testing.T, p provider) {
		cfg := Config{Ring: 8192, SendBuffer: 4096, MaxConns: 3}
		e := newPair(t, p, cfg, cfg)
		var conns []*Conn
		for range 3 {
			c1, c2 := e.conn()
			conns = append(conns, c1, c2)
		}
		want := ringOffset + 8192 + sendOffset + 4096 + sendSlack
		room := e.a.cfg.room()
		if got := conns[0].Memory(); got != want {
			t.Errorf("%d bytes a connection, want %d", got, want)
		}
		if s := e.a.Stats(); s.Conns != 3 || s.Memory != 3*want {
			t.Errorf("%+v", s)
		}
		if _, err := e.a.DialContext(t.Context(), e.l.Addr().String()); !errors.Is(err, rdma.ErrBusy) {
			t.Errorf("a fourth connection: %v", err)
		}
		_, err := conns[0].Write(pattern(1000, 1))
		must(t, err)
		readFull(t, conns[1], 1000)
		for _, c := range conns {
			must(t, c.Close())
		}
		if s := e.a.Stats(); s.Conns != 0 || s.Memory != 0 || s.Pooled != 3*room {
			t.Errorf("after close: %+v", s)
		}
		var spare []rdma.Buffer
		for range 3 {
			for _, n := range []int{cfg.remoteLen(), cfg.localLen()} {
				b, err := e.a.store.Alloc(n)
				must(t, err)
				if i := bytes.IndexFunc(b.Bytes(), func(r rune) bool { return r != 0 }); i >= 0 {
					t.Fatalf("byte %d of pooled memory is not zero", i)
				}
				spare = append(spare, b)
			}
		}
		if s := e.a.Stats(); s.Pooled != 0 {
			t.Errorf("%d bytes are pooled beside those of three connections", s.Pooled)
		}
		for _, b := range spare {
			must(t, e.a.store.Free(b))
		}
		regs := e.a.cache.Counters()
		c1, _ := e.conn()
		if n := e.a.cache.Counters(); n.MemRegs != regs.MemRegs+1 || n.HitsFast != regs.HitsFast+1 {
			t.Errorf("a connection with memory of the pool registers more than its ring: %+v behind %+v", n, regs)
		}
		if s := e.a.Stats(); s.Pooled != 2*room {
			t.Errorf("a new connection takes nothing from the pool: %+v", s)
		}
		must(t, c1.Close())
	})
}

// A reader is about to sleep while another goroutine has polled in vain: what arrived between that poll and the reader's
// request for an event raises none, and is found all the same.
func TestAReaderFindsWhatCameBeforeItsEventWasAskedFor(t *testing.T) {
	cfg := Config{Polling: bpev.Config{Mode: bpev.Event}}
	e := newPair(t, providers[1], cfg, cfg)
	c1, c2 := e.conn()
	c2.lane.mu.Lock()
	_, err := c1.Write([]byte("x"))
	must(t, err)
	for end := time.Now().Add(50 * time.Millisecond); time.Now().Before(end); time.Sleep(time.Millisecond) {
		_, err := c2.lane.cq.Poll(nil) // takes what arrives, and no completion
		must(t, err)
	}
	time.AfterFunc(50*time.Millisecond, c2.lane.mu.Unlock) // the other goroutine is done, and looks no more
	if got := readFull(t, c2, 1); string(got) != "x" {
		t.Errorf("%q", got)
	}
}

func TestConfigIsChecked(t *testing.T) {
	a, b := providers[0].open(t)
	defer a.Close()
	defer b.Close()
	for _, cfg := range []Config{
		{Ring: 5000}, {Ring: 2048}, {Ring: 2 << 30}, {SendBuffer: 100}, {SendBuffer: 5000}, {MaxConns: -1},
		{Arrival: ArrivalNotice + 1}, {Arrival: ArrivalWatch, Polling: bpev.Config{Mode: bpev.Event}},
	} {
		if n, err := New(a, cfg); !errors.Is(err, rdma.ErrInvalid) {
			n.Close()
			t.Errorf("%+v: %v", cfg, err)
		}
	}
	if _, err := New(a, Config{Polling: bpev.Config{Pollers: -1}}); !errors.Is(err, bpev.ErrConfig) {
		t.Error(err)
	}
}

// The hot path: what fits is written and read without allocation.
func TestSteadyStateAllocatesNothing(t *testing.T) {
	polls := bpev.Config{Mode: bpev.BP} // bpev sleeps on a busy machine, where the device in memory allocates
	for _, cfg := range []Config{{Polling: polls}, {Polling: polls, Arrival: ArrivalNotice}} {
		t.Run(configName(cfg), func(t *testing.T) {
			e := newPair(t, providers[0], cfg, cfg)
			c1, c2 := e.conn()
			out, in := pattern(200, 1), make([]byte, 300)
			n := testing.AllocsPerRun(500, func() {
				c1.Write(out)
				c2.Read(in)
			})
			if n != 0 {
				t.Errorf("%v allocations a message", n)
			}
		})
	}
}

// On iWARP the side that accepts sends nothing before the other one has, and siw
// relies on it.
func TestAcceptorWaitsForTheFirstWord(t *testing.T) {
	e := newPair(t, providers[1], Config{Ring: minRing, Arrival: ArrivalWatch},
		Config{Ring: minRing, Arrival: ArrivalWatch})
	r, c := intrude(t, e)
	must(t, c.SetWriteDeadline(time.Now().Add(30*time.Millisecond)))
	if n, err := c.Write([]byte("too soon")); n != 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("%d bytes before the first word, %v", n, err)
	}
	r.post(rdma.OpWrite, cell(credit{}), r.peer.addr, 0)
	must(t, c.SetWriteDeadline(time.Now().Add(testTimeout)))
	_, err := c.Write([]byte("in time"))
	must(t, err)
}

// A Net that closes takes the connection that is being made with it, so that the
// device below can close, too.
func TestCloseEndsDials(t *testing.T) {
	dev, err := iwarp.Open(iwarp.Config{})
	must(t, err)
	n, err := New(dev, Config{})
	must(t, err)
	silent, err := net.Listen("tcp", "127.0.0.1:0") // takes connections and never answers
	must(t, err)
	defer silent.Close()
	got := make(chan error, 1)
	go func() {
		_, err := n.DialContext(context.Background(), silent.Addr().String())
		got <- err
	}()
	c, err := silent.Accept() // the dial is under way
	must(t, err)
	defer c.Close()
	must(t, n.Close())
	select {
	case err := <-got:
		if err == nil {
			t.Error("the dial succeeds")
		}
	case <-time.After(testTimeout):
		t.Fatal("the dial goes on")
	}
	must(t, dev.Close())
}
