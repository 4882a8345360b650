package iwarp

import (
	"context"
	"runtime"
	"testing"
	"time"

	"github.com/rdmaperf/rdmaperf/softstack/wiretest"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
	"github.com/rdmaperf/rdmaperf/transports/stream"
)

const unreadLen = 160 << 10 // above a window of loopback's default, below our socket's buffer

// unread posts write 1, of unreadLen octets, to a peer that does not read.
func unread(t *testing.T, cfg Config) (*end, *wiretest.Peer) {
	t.Helper()
	cfg.SendBuffer = 208 << 10
	e := newEnd(t, cfg, rdma.QPConfig{})
	p := scripted(t, e, 16, 16)
	e.post(rdma.SendWR{ID: 1, Op: rdma.OpWrite, NumSGE: 1, SGE: [4]rdma.SGE{e.sge(0, unreadLen)}, RKey: 0x77})
	return e, p
}

// A write to a peer that does not read completes without OnAck, and with it when the peer's TCP has it.
func TestOnAckAWriteIsDoneWhenThePeersStackHasIt(t *testing.T) {
	for name, onAck := range map[string]bool{"taken": false, "acked": true} {
		t.Run(name, func(t *testing.T) {
			e, p := unread(t, Config{OnAck: onAck})
			if !onAck {
				e.want(nil, rdma.WCWrite, 1, rdma.StatusSuccess)
			}
			q := e.qp.(*qp)
			for stop := time.Now().Add(100 * time.Millisecond); time.Now().Before(stop); {
				if n, err := e.cq.Poll(e.wcs[:1]); n != 0 || err != nil {
					t.Fatalf("%d completions, %v, of what the peer has not read", n, err)
				}
			}
			if left := locked(q, func() uint64 { return q.tx.framed - q.tx.sent }); left != 0 {
				t.Fatalf("our socket did not take %d octets, so nothing is shown", left)
			}
			takeWrites(t, p, unreadLen)
			if onAck {
				e.want(nil, rdma.WCWrite, 1, rdma.StatusSuccess)
			}
		})
	}
}

// A disconnect waits for acknowledgements as long as its context lasts, and flushes what lacks them.
func TestOnAckADisconnectWaitsForWhatIsUnderWay(t *testing.T) {
	for name, c := range map[string]struct {
		reads  bool
		limit  time.Duration
		status rdma.Status
		err    error
	}{
		"late":  {true, testTimeout, rdma.StatusSuccess, nil},
		"never": {false, 50 * time.Millisecond, rdma.StatusWRFlushErr, context.DeadlineExceeded},
	} {
		t.Run(name, func(t *testing.T) {
			e, p := unread(t, Config{OnAck: true})
			q := e.qp.(*qp)
			q.soon(t, "our socket to take all", func() bool { q.progress(); return q.tx.framed >= unreadLen && q.tx.empty() })
			ended := make(chan error, 1)
			go func() {
				ctx, cancel := context.WithTimeout(t.Context(), c.limit)
				defer cancel()
				ended <- e.qp.Disconnect(ctx)
			}()
			if c.reads {
				time.Sleep(20 * time.Millisecond) // so that it waits
				takeWrites(t, p, unreadLen)
			}
			if err := <-ended; err != c.err {
				t.Errorf("Disconnect: %v, want %v", err, c.err)
			}
			e.want(nil, rdma.WCWrite, 1, c.status)
		})
	}
}

// Who sleeps in Wait learns of it too, though nothing tells of an acknowledgement.
func TestOnAckEndsAWait(t *testing.T) {
	a, b := pair(t, Config{OnAck: true}, rdma.QPConfig{})
	for id := range uint64(5) {
		a.post(a.remote(rdma.OpWrite, id, 0, 100_000, b))
		ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
		n, err := 0, error(nil)
		for n == 0 && err == nil {
			must(t, a.cq.Arm(false))
			if n, err = a.cq.Poll(a.wcs[:1]); n == 0 && err == nil {
				err = a.cq.Wait(ctx)
			}
		}
		cancel()
		if err != nil || a.wcs[0].ID != id || a.wcs[0].Status != rdma.StatusSuccess {
			t.Fatalf("write %d: %d completions, %v, %+v", id, n, err, a.wcs[0])
		}
	}
}

// Before an orderly end the peer's stack had all that it acknowledged, and said so.
func TestOnAckAPeerThatHangsUpTookWhatItAcknowledged(t *testing.T) {
	a, b := pair(t, Config{OnAck: true}, rdma.QPConfig{})
	a.post(a.remote(rdma.OpWrite, 7, 0, 5000, b))
	time.Sleep(20 * time.Millisecond) // the kernels talk, and nobody polls a
	must(t, b.qp.Disconnect(t.Context()))
	a.want(nil, rdma.WCWrite, 7, rdma.StatusSuccess)
}

// late is a connection whose acknowledgement comes between two questions for it.
type late struct {
	stream.Conn
	asked int
}

func (c *late) Unacked() (int, error) {
	if c.asked++; c.asked == 1 {
		return 1, nil
	}
	return 0, nil
}

// A Write that is acknowledged behind the look that found it is not, before the thread sleeps, completes.
func TestAnAcknowledgementBetweenTwoLooksEndsARequest(t *testing.T) {
	for name, held := range map[string]bool{"posted": false, "held": true} {
		t.Run(name, func(t *testing.T) {
			a, b := pair(t, Config{ReceiveThread: true, OnAck: true}, rdma.QPConfig{})
			q := a.qp.(*qp)
			set := func(c stream.Conn) {
				q.mu.Lock()
				defer q.mu.Unlock()
				q.conn = c
			}
			once := func(id uint64) {
				if held {
					must(t, a.qp.Drain())
				}
				eventually(t, "the thread to sleep", a.dev.receiver.asleep.Load)
				c := &late{Conn: q.conn} // of which nobody else makes another
				set(c)
				defer set(c.Conn)
				a.post(a.remote(rdma.OpWrite, id, 0, 100, b))
				if held {
					must(t, a.qp.Resume())
				}
				a.want(nil, rdma.WCWrite, id, rdma.StatusSuccess)
				q.mu.Lock()
				defer q.mu.Unlock()
				if c.asked < 2 {
					t.Fatalf("asked %d times, so that nothing is shown", c.asked)
				}
			}
			for id := range uint64(3) {
				once(id)
			}
		})
	}
}

// The thread that waits for an acknowledgement offers its CPU, as the peer may need that to read.
func TestWhoWaitsForAnAcknowledgementOffersTheCPU(t *testing.T) {
	e, p := unread(t, Config{ReceiveThread: true, OnAck: true})
	q := e.qp.(*qp)
	q.soon(t, "our socket to take all", func() bool { return q.tx.framed >= unreadLen && q.tx.empty() })
	from := e.dev.receiver.Yields.Load()
	eventually(t, "yields", func() bool { return e.dev.receiver.Yields.Load() > from+100 })
	if n, err := e.cq.Poll(e.wcs[:1]); n != 0 || err != nil {
		t.Fatalf("%d completions, %v, of what the peer has not read", n, err)
	}
	takeWrites(t, p, unreadLen)
	e.want(nil, rdma.WCWrite, 1, rdma.StatusSuccess)
}

// Threads that spin for two devices leave the runtime a P, as long as there are these devices.
func TestAReceiveThreadTakesNoPFromTheApplication(t *testing.T) {
	base := runtime.GOMAXPROCS(1)
	defer runtime.GOMAXPROCS(base)
	a, b := need(Open(Config{ReceiveThread: true}))(t), need(Open(Config{ReceiveThread: true}))(t)
	eventually(t, "Ps", func() bool { return runtime.GOMAXPROCS(0) == 3 })
	must(t, a.Close())
	must(t, b.Close())
	if got := runtime.GOMAXPROCS(0); got != 1 {
		t.Errorf("GOMAXPROCS is %d behind the last of them", got)
	}
}

// A queue pair that came and posted behind the last round is looked at before the thread sleeps.
func TestWhoCameBehindTheLastRoundIsLookedAt(t *testing.T) {
	r := &receiver{}
	r.qps.Store(&[]*qp{})
	if !r.waiting() {
		t.Fatal("stays awake for nobody")
	}
	q := &qp{dev: &Device{cfg: Config{OnAck: true}}, phase: phaseOpen, sq: make([]sqEntry, 1), sqNext: 1}
	q.sq[0].wr.Op = rdma.OpSend
	r.qps.Store(&[]*qp{q})
	if r.waiting() {
		t.Error("sleeps while a send waits for its acknowledgement")
	}
}
