package drive_test

import (
	"context"
	"testing"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine/enginetest"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/latency"
	"github.com/rdmaperf/rdmaperf/transports"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// late is a server's transport whose sessions refuse every write for a full queue
// until they are polled, as a device does whose acknowledgements come late.
type late struct {
	transports.Transport
	refused int
}

// Caps leave PingPong out: they would pass by what refuses here.
func (t *late) Caps() transports.Caps {
	c := t.Transport.Caps()
	c.PingPong = false
	return c
}

func (t *late) Listen(ctx context.Context, addr string, cfg transports.Config) (transports.Listener, error) {
	l, err := t.Transport.Listen(ctx, addr, cfg)
	return &lateListener{l, t}, err
}

type lateListener struct {
	transports.Listener
	t *late
}

func (l *lateListener) Accept(ctx context.Context) (transports.Session, []byte, error) {
	s, hello, err := l.Listener.Accept(ctx)
	return &lateSession{Session: s, t: l.t}, hello, err
}

type lateSession struct {
	transports.Session
	t           *late
	asked, room bool
}

func (s *lateSession) Post(ops []transports.Op) (int, error) {
	if ops[0].Kind == transports.KindWrite {
		if !s.room {
			s.t.refused++
			s.asked = true
			return 0, rdma.ErrQueueFull
		}
		s.asked, s.room = false, false
	}
	return s.Session.Post(ops)
}

func (s *lateSession) Poll(dst []transports.Done) (int, error) {
	s.room = s.asked
	return s.Session.Poll(dst)
}

// The next ping can arrive before the acknowledgement of the last pong: on a busy
// machine a soft device's acknowledgements are a task of their own.
func TestAnswersWaitForRoomInTheQueue(t *testing.T) {
	var server *late
	results, err := enginetest.RunPoints(t, func(t testing.TB) (transports.Stack, transports.Stack) {
		c, s := enginetest.SessionEnds(t, enginetest.MemEnds)
		server = &late{Transport: s}
		return c, server
	}, enginetest.QuickPlan(engine.Point{Workload: latency.Name, Op: "write", Size: 64}))
	if err != nil {
		t.Fatal(err)
	}
	if len(results) != 1 || results[0].Latency == nil || results[0].Latency.Count != 300 {
		t.Errorf("results = %+v, want one with 300 samples", results)
	}
	if server.refused < 300 {
		t.Errorf("%d answers had to wait, want every one", server.refused)
	}
}
