package drive

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/transports"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// dialling is a stack whose n-th dial does what a test says.
type dialling struct {
	costing
	mu   sync.Mutex
	n    int
	dial func(ctx context.Context, n int) error
}

// conn counts how often it is closed.
type conn struct {
	transports.CallConn
	closed int
}

func (c *conn) Close() error { c.closed++; return nil }

func (d *dialling) DialCalls(ctx context.Context, _ string, _ transports.CallConfig) (transports.CallConn, error) {
	d.mu.Lock()
	n := d.n
	d.n++
	d.mu.Unlock()
	if err := d.dial(ctx, n); err != nil {
		return nil, err
	}
	return &conn{}, nil
}

// connecting dials so many connections in a bubble.
func connecting(t *testing.T, qps int, ctx context.Context, dial func(ctx context.Context, n int) error,
	check func(k *Calls, took time.Duration, err error)) {
	t.Helper()
	bubble(t, func(t *testing.T) {
		m, k := point()
		m.Sh.QPs, m.Sh.Timeout, m.Sh.Layout.Window = qps, time.Second, 360
		k.groups = nil
		begin := time.Now()
		err := k.connect(ctx, &dialling{dial: dial}, "nowhere")
		check(k, time.Since(begin), err)
	})
}

// All connections together have the time of a point's set-up, and 10 ms each; none that was made ends the others.
func TestConnectionsHaveTheirTime(t *testing.T) {
	const qps = 3 * dialsAtOnce
	connecting(t, qps, context.Background(), func(ctx context.Context, n int) error {
		until, ok := ctx.Deadline()
		time.Sleep(time.Millisecond)
		if left := time.Until(until).Round(100 * time.Millisecond); !ok || left < time.Second+400*time.Millisecond ||
			left > time.Second+500*time.Millisecond {
			t.Errorf("dial %d has %v, want 1 s and 10 ms for each of %d", n, left, qps)
		}
		return ctx.Err()
	}, func(k *Calls, took time.Duration, err error) {
		if err != nil || took != 3*time.Millisecond {
			t.Fatalf("%v after %v, want %d dials at once", err, took, dialsAtOnce)
		}
		open := k.conns[1].(*conn)
		k.conns[0] = nil
		if k.close(); open.closed != 1 || k.conns[qps-1].(*conn).closed != 1 {
			t.Error("a connection is left open")
		}
	})
}

// One dial that fails ends the others at once, and is reported; one that waits for nobody any more is an interrupt.
func TestADialThatFailsEndsTheOthers(t *testing.T) {
	refused := fmt.Errorf("refused: %w", rdma.ErrNotSupported)
	wait := func(ctx context.Context, n int) error {
		if n == 3 {
			return refused
		}
		<-ctx.Done()
		return ctx.Err()
	}
	connecting(t, 2*dialsAtOnce, context.Background(), wait, func(k *Calls, took time.Duration, err error) {
		if !errors.Is(err, refused) || took != 0 {
			t.Errorf("%v after %v, want the dial that was refused", err, took)
		}
	})
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	connecting(t, 1, ctx, wait, func(k *Calls, took time.Duration, err error) {
		if !errors.Is(err, engine.ErrInterrupted) {
			t.Errorf("%v, want an interrupt", err)
		}
	})
}

// Of several connections an error names the one that it came from.
func TestAFailedCallNamesItsConnection(t *testing.T) {
	m, k := point()
	m.Sh.Words = "calls"
	for qps, named := range map[int]bool{1: false, 2: true} {
		m.Sh.QPs = qps
		err := (&callWorker{k: k, conn: 1}).failed(errors.New("gone"))
		if got := strings.Contains(err.Error(), "connection 1:"); got != named {
			t.Errorf("of %d: %v", qps, err)
		}
	}
}
