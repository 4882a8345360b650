package peerrpc

import (
	"testing"
	"time"

	"github.com/rdmaperf/rdmaperf/internal/expect"
	"github.com/rdmaperf/rdmaperf/transports"
)

// panics is a handler that panics at the request "panic".
type panics struct{ echo }

func (p panics) ServeCall(s *transports.Served) error {
	if string(s.Request[0]) == "panic" {
		panic("injected")
	}
	return p.echo.ServeCall(s)
}

// A client whose request makes the thread of all clients panic ends alone.
func TestAPanicEndsOneConnectionAlone(t *testing.T) {
	cfg := transports.CallConfig{MaxRequest: 100, MaxResponse: 100, Callers: 1, Conns: 2}
	everywhere(t, cfg, panics{}, func(t *testing.T, w *world) {
		bad := expect.Get(w.client.DialCalls(soon(t), w.server.Addr(), cfg))(t)
		defer bad.Close()
		k := expect.Get(bad.Caller(soon(t), transports.CallerConfig{Timeout: 20 * time.Second}))(t)
		defer k.Close()
		wants(t, k.Call(&transports.Call{Request: []byte("panic")}), transports.CallUnavailable)
		good := callerOf(t, w, transports.CallerConfig{Timeout: 20 * time.Second})
		expect.OK(t, good.Call(&transports.Call{Request: []byte("x")}))
	})
}
