package drive

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/transports"
)

// silent is a service that nobody calls.
type silent struct {
	transports.CallHandler
	begin error
	ended bool
}

func (s *silent) Begin(int) error     { return s.begin }
func (s *silent) End() (int64, error) { s.ended = true; return 0, nil }
func (s *silent) Close() error        { return nil }

// A phase of calls ends with what ended it: the interrupt of the server, a failure of its service,
// or one of its beginning; and what was begun is ended with it.
func TestWhatEndsAPhaseOfCalls(t *testing.T) {
	for name, c := range map[string]struct {
		begin, failure error
		interrupted    bool
		want           error
		ended          bool
	}{
		"an interrupt":            {nil, nil, true, context.Canceled, true},
		"a failure":               {nil, errBroken, false, errBroken, true},
		"one that does not begin": {errBroken, nil, false, errBroken, false},
	} {
		near, far := net.Pipe()
		running := make(chan struct{})
		go func() { // a client that sees the phase run
			defer close(running)
			far.SetReadDeadline(time.Now().Add(10 * time.Second))
			far.Read(make([]byte, 1<<16))
		}()
		ctx, cancel := context.WithCancel(context.Background())
		if c.interrupted {
			cancel()
		}
		failure := make(chan error, 1)
		if c.failure != nil {
			failure <- c.failure
		}
		svc := &silent{begin: c.begin}
		served := &engine.ServedClient{Server: &engine.Server{}, Ctl: &engine.Control{Conn: near, Alive: ctx}}
		if err := callPhase(ctx, served.NewServe(engine.Point{}, time.Minute), svc, failure,
			&engine.PhaseStart{Generation: engine.GenMeasure}); !errors.Is(err, c.want) || svc.ended != c.ended {
			t.Errorf("%s: %v, want %v; the service is ended: %v", name, err, c.want, svc.ended)
		}
		cancel()
		near.Close()
		<-running
		far.Close()
	}
}

// bad is a handler that panics.
type bad struct{}

func (bad) ServeCall(*transports.Served) error { panic("injected") }

// A panic of a handler is the error of its call.
func TestAPanicOfAHandlerIsTheErrorOfTheCall(t *testing.T) {
	err := Answers{CallHandler: bad{}}.ServeCall(new(transports.Served))
	if e := transports.AsCallError(err); e == nil || e.Code != transports.CallInternal ||
		!strings.Contains(e.Text, "injected") {
		t.Errorf("%v", err)
	}
}
