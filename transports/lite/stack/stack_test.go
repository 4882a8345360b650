package stack

import (
	"context"
	"testing"
	"time"

	"github.com/rdmaperf/rdmaperf/internal/leaktest"
	"github.com/rdmaperf/rdmaperf/softstack/iwarp"
	"github.com/rdmaperf/rdmaperf/transports"
	"github.com/rdmaperf/rdmaperf/transports/callstest"
	"github.com/rdmaperf/rdmaperf/transports/internal/sessiontest"
	"github.com/rdmaperf/rdmaperf/transports/memdev"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

func soon(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	t.Cleanup(cancel)
	return ctx
}

func onMem(t testing.TB, cfg Config) (near, far *Stack, addr string) {
	t.Helper()
	f := memdev.NewFabric(memdev.Config{})
	make := func(name string) *Stack {
		d, err := f.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		s, err := New(d, cfg)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	return make("near"), make("far"), ":0"
}

func onIWARP(t testing.TB, cfg Config) (near, far *Stack, addr string) {
	t.Helper()
	make := func() *Stack {
		d, err := iwarp.Open(iwarp.Config{})
		if err != nil {
			t.Fatal(err)
		}
		s, err := New(d, cfg)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	return make(), make(), "127.0.0.1:0"
}

func TestSessions(t *testing.T) {
	for what, open := range map[string]func(testing.TB, Config) (*Stack, *Stack, string){"mem": onMem, "iwarp": onIWARP} {
		t.Run(what, func(t *testing.T) {
			sessiontest.Run(t, func(t testing.TB) (near, far transports.Transport, addr string) { return open(t, Config{}) })
		})
	}
}

func TestCalls(t *testing.T) {
	for what, open := range map[string]func(testing.TB, Config) (*Stack, *Stack, string){"mem": onMem, "iwarp": onIWARP} {
		for form, cfg := range map[string]Config{"": {}, " sends": {Sends: true}, " poll=node": {Polling: PollNode}, " poll=adaptive": {Polling: PollAdaptive}} {
			t.Run(what+form, func(t *testing.T) {
				callstest.Run(t, func(t *testing.T) (client, server transports.CallTransport) {
					near, far, _ := open(t, cfg)
					t.Cleanup(func() { near.Close(); far.Close() })
					return near, far
				})
			})
		}
	}
}
