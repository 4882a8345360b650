package iwarp

import (
	"context"
	"testing"
	"time"

	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// A peer that reads nothing has its window closed: what our socket has taken is a completion
// without OnAck, and none with it until the peer's TCP has the last octet.
func TestOnAckAWriteIsDoneWhenThePeersStackHasIt(t *testing.T) {
	const size = 160 << 10 // above a window of loopback's default, below our socket's buffer
	for name, onAck := range map[string]bool{"taken": false, "acked": true} {
		t.Run(name, func(t *testing.T) {
			e := newEnd(t, Config{OnAck: onAck, SendBuffer: 208 << 10}, rdma.QPConfig{})
			p := scripted(t, e, 16, 16)
			e.post(rdma.SendWR{ID: 1, Op: rdma.OpWrite, NumSGE: 1, SGE: [4]rdma.SGE{e.sge(0, size)}, RKey: 0x77,
				RemoteAddr: 0x7000})
			if !onAck {
				e.want(nil, rdma.WCWrite, 1, rdma.StatusSuccess)
			}
			q := e.qp.(*qp)
			for stop := time.Now().Add(100 * time.Millisecond); time.Now().Before(stop); {
				if n, err := e.cq.Poll(e.wcs[:1]); n != 0 || err != nil {
					t.Fatalf("%d completions, %v, of what the peer has not read", n, err)
				}
			}
			q.mu.Lock()
			left := q.tx.framed - q.tx.sent
			q.mu.Unlock()
			if left != 0 {
				t.Fatalf("our socket did not take %d octets, so nothing is shown", left)
			}
			takeWrites(t, p, size)
			if onAck {
				e.want(nil, rdma.WCWrite, 1, rdma.StatusSuccess)
			}
		})
	}
}

// A disconnect ends nothing that is on its way: it waits for the acknowledgement as long as its
// context lets it, and what the peer's stack does not have by then is flushed.
func TestOnAckADisconnectWaitsForWhatIsUnderWay(t *testing.T) {
	const size = 160 << 10 // more than a peer's stack takes that does not read, less than ours
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
			e := newEnd(t, Config{OnAck: true, SendBuffer: 208 << 10}, rdma.QPConfig{})
			p := scripted(t, e, 16, 16)
			e.post(rdma.SendWR{ID: 1, Op: rdma.OpWrite, NumSGE: 1, SGE: [4]rdma.SGE{e.sge(0, size)}, RKey: 0x77,
				RemoteAddr: 0x7000})
			eventually(t, "our socket to take all", func() bool {
				q := e.qp.(*qp)
				q.mu.Lock()
				defer q.mu.Unlock()
				q.progress()
				return q.tx.framed >= size && q.tx.empty()
			})
			ended := make(chan error, 1)
			go func() {
				ctx, cancel := context.WithTimeout(t.Context(), c.limit)
				defer cancel()
				ended <- e.qp.Disconnect(ctx)
			}()
			if c.reads {
				time.Sleep(20 * time.Millisecond) // so that it waits
				takeWrites(t, p, size)
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
