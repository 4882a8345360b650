package stack

import (
	"context"
	"errors"
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

// The two windows of a session share a queue pair, so that what one side writes carries
// the acknowledgement of what the other wrote; several sessions are spread over all there are.
func TestBothEndsOfASessionUseOneQueuePair(t *testing.T) {
	near, far, addr := onMem(t, Config{})
	defer near.Close()
	defer far.Close()
	cfg := transports.Config{Window: 4096, SendDepth: 4, RecvDepth: 4}
	l, err := far.Listen(soon(t), addr, cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	used := map[int]bool{}
	for range 4 {
		accepted := make(chan transports.Session, 1)
		go func() {
			s, _, err := l.Accept(soon(t))
			if err != nil {
				t.Error(err)
			}
			accepted <- s
		}()
		a, err := near.Dial(soon(t), l.Addr(), nil, cfg)
		if err != nil {
			t.Fatal(err)
		}
		b := <-accepted
		defer b.Close()
		defer a.Close()
		for _, priority := range []uint8{0, 3} {
			for _, x := range []*session{a.(*session), b.(*session)} {
				op := transports.Op{Kind: transports.KindWrite, Len: 8, Priority: priority}
				if n, err := x.Post([]transports.Op{op}); n != 1 {
					t.Fatal(err)
				}
			}
			here, there := a.(*session).clients[priority].QueuePair()%4, b.(*session).clients[priority].QueuePair()%4
			if here != there {
				t.Errorf("priority %d: queue pair %d here, %d there", priority, here, there)
			}
			used[here] = true
		}
	}
	if len(used) != 4 {
		t.Errorf("four sessions use the queue pairs %v of four", used)
	}
}

// A node that shows another secret than the listener's is no member: it makes no session,
// and who has it does so behind it.
func TestSessionsNeedTheSecret(t *testing.T) {
	near, far, addr := onMem(t, Config{})
	defer near.Close()
	defer far.Close()
	cfg := transports.Config{Window: 4096, SendDepth: 4, RecvDepth: 4, Secret: []byte("8 octets")}
	l, err := far.Listen(soon(t), addr, cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for _, wrong := range []string{"", "8 Octets"} {
		strange := cfg
		strange.Secret = []byte(wrong)
		if s, err := near.Dial(soon(t), l.Addr(), nil, strange); err == nil {
			s.Close()
			t.Errorf("with the secret %q there is a session", wrong)
		}
	}
	took, left := make(chan error, 1), make(chan struct{})
	go func() {
		s, _, err := l.Accept(soon(t))
		took <- err
		<-left
		if err == nil {
			s.Close()
		}
	}()
	defer close(left)
	s, err := near.Dial(soon(t), l.Addr(), nil, cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := <-took; err != nil {
		t.Error(err)
	}
}

// Who gives up while a node is made, and is the last who wanted it, leaves none behind, also where
// it is there at that moment.
func TestADiallerThatGivesUpLeavesNoNode(t *testing.T) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	gaveUp := 0
	for range 20 { // each takes the one end or the other of two that are there
		near, far, addr := onMem(t, Config{})
		l, err := far.Listen(soon(t), addr, transports.Config{Window: 4096, SendDepth: 4, RecvDepth: 4})
		if err != nil {
			t.Fatal(err)
		}
		n, err := near.join(soon(t), l.Addr(), 1<<20, nil)
		if err != nil {
			t.Fatal(err)
		}
		n.users = 0 // who made it is gone again, and another one just came
		if _, err = near.join(ended, l.Addr(), 1<<20, nil); err != nil {
			gaveUp++
		} else {
			err = n.done()
		}
		if err != nil && !errors.Is(err, context.Canceled) {
			t.Errorf("it ends with %v", err)
		}
		if err := l.Close(); err != nil {
			t.Errorf("close the listener: %v", err)
		}
		if err := near.Close(); err != nil {
			t.Fatalf("close the dialler's device: %v", err)
		}
		if err := far.Close(); err != nil {
			t.Fatalf("close the listener's device: %v", err)
		}
	}
	if gaveUp == 0 {
		t.Error("none of 20 gave up")
	}
}
