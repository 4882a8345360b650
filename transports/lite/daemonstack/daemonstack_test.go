package daemonstack

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rdmaperf/rdmaperf/internal/expect"
	"github.com/rdmaperf/rdmaperf/internal/leaktest"
	"github.com/rdmaperf/rdmaperf/softstack/iwarp"
	"github.com/rdmaperf/rdmaperf/transports"
	"github.com/rdmaperf/rdmaperf/transports/internal/sessiontest"
	"github.com/rdmaperf/rdmaperf/transports/lite"
	"github.com/rdmaperf/rdmaperf/transports/lite/daemon"
	"github.com/rdmaperf/rdmaperf/transports/memdev"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// asDaemon makes the test binary a daemon over iwarp, with the flags of the command.
const asDaemon = "as-a-daemon"

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == asDaemon {
		if err := serve(os.Args[2:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	leaktest.Main(m)
}

func serve(args []string) error {
	f := flag.NewFlagSet(asDaemon, flag.ContinueOnError)
	cfg := lite.Config{DeadAfter: 15 * time.Second}
	socket := f.String("socket", "", "")
	f.StringVar(&cfg.Listen, "listen", "127.0.0.1:0", "")
	f.StringVar(&cfg.Manager, "manager", "", "")
	f.IntVar(&cfg.Segments, "places", 0, "")
	f.IntVar(&cfg.SegmentSize, "place-memory", 0, "")
	f.IntVar(&cfg.Arena, "arena", 0, "")
	f.IntVar(&cfg.Links, "links", 4, "")
	quiet := f.Duration("for", 0, "")
	f.Bool("until-eof", true, "")
	if err := f.Parse(args); err != nil {
		return err
	}
	dev, err := iwarp.Open(iwarp.Config{})
	if err != nil {
		return err
	}
	n, err := lite.Open(context.Background(), dev, cfg)
	if err != nil {
		return err
	}
	d, err := daemon.Serve(n, *socket, daemon.Config{For: *quiet})
	if err != nil {
		return err
	}
	fmt.Println("ready")
	_, _ = io.Copy(io.Discard, os.Stdin) // until the end of who started this
	_ = d.Close()
	return n.Close()
}

func open(t testing.TB, cfg Config) *Stack {
	t.Helper()
	cfg.Command = []string{expect.Get(os.Executable())(t), asDaemon}
	s := expect.Get(New(expect.Get(iwarp.Open(iwarp.Config{}))(t), cfg))(t)
	t.Cleanup(func() { s.Close() })
	return s
}

// mirror answers with the request; method 1 fails.
type mirror struct{}

func (mirror) ServeCall(s *transports.Served) error {
	if s.Method == 1 {
		return &transports.CallError{Code: transports.CallNotFound, Text: "no such thing"}
	}
	s.Response = s.Request.AppendTo([]byte{s.Method})
	return nil
}

func TestCallsGoThroughTwoDaemons(t *testing.T) {
	for name, cfg := range map[string]Config{"hidden": {}, "crossing": {Cross: true, Links: 1}} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
			defer cancel()
			sizes := transports.CallConfig{MaxRequest: 100_000, MaxResponse: 100_001, Callers: 2, Conns: 1}
			server := expect.Get(open(t, cfg).ListenCalls(ctx, "127.0.0.1:0", sizes, mirror{}))(t)
			conn := expect.Get(open(t, cfg).DialCalls(ctx, server.Addr(), sizes))(t)
			var all sync.WaitGroup
			for n := range sizes.Callers {
				k := expect.Get(conn.Caller(ctx, transports.CallerConfig{Timeout: 20 * time.Second}))(t)
				all.Go(func() {
					defer k.Close()
					for i, size := range []int{0, 1, 64, 4096, 100_000, 7, 300} {
						q := transports.Call{Method: 2, Request: bytes.Repeat([]byte{byte(n*100 + i)}, size)}
						if err := k.Call(&q); err != nil {
							t.Errorf("%d bytes: %v", size, err)
						} else if got := q.Response.AppendTo(nil); !bytes.Equal(got, append([]byte{2}, q.Request...)) {
							t.Errorf("%d bytes came back as %d others", size, len(got))
						}
					}
					var e *transports.CallError
					if err := k.Call(&transports.Call{Method: 1}); !errors.As(err, &e) ||
						e.Code != transports.CallNotFound || e.Text != "no such thing" {
						t.Errorf("a handler's error: %v", err)
					}
					if err := k.Call(&transports.Call{Method: 2, Request: make([]byte, 100_001)}); !errors.As(err,
						&e) || e.Code != transports.CallResourceExhausted {
						t.Errorf("too long: %v", err)
					}
				})
			}
			all.Wait()
			k := expect.Get(conn.Caller(ctx, transports.CallerConfig{Timeout: 20 * time.Second}))(t)
			expect.OK(t, server.Close())
			var e *transports.CallError
			if err := k.Call(&transports.Call{Method: 2}); !errors.As(err, &e) || e.Code != transports.CallUnavailable {
				t.Errorf("the end of the server: %v", err)
			}
			k.Close()
			expect.OK(t, conn.Close())
		})
	}
}

// A session through two daemons keeps every rule of sessions.
func TestSessions(t *testing.T) {
	sessiontest.Run(t, func(t testing.TB) (near, far transports.Transport, addr string) {
		return open(t, Config{}), open(t, Config{}), "127.0.0.1:0"
	})
}

func TestADaemonThatCannotStartSaysWhy(t *testing.T) {
	s := open(t, Config{})
	s.cfg.Command = append(s.cfg.Command, "--no-such-flag")
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	_, err := s.ListenCalls(ctx, "127.0.0.1:0", transports.CallConfig{}, nil)
	if err == nil || !strings.Contains(err.Error(), "no-such-flag") {
		t.Errorf("%v", err)
	}
}

func TestADeviceOfOneProcessIsRefused(t *testing.T) {
	dev := expect.Get(memdev.NewFabric(memdev.Config{}).Open("x"))(t)
	defer dev.Close()
	if _, err := New(dev, Config{Command: []string{"x"}}); err == nil ||
		!strings.Contains(err.Error(), rdma.ErrNotSupported.Error()) {
		t.Errorf("%v", err)
	}
}
