package session

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/rdmaperf/rdmaperf/internal/expect"
	"github.com/rdmaperf/rdmaperf/transports"
	"github.com/rdmaperf/rdmaperf/transports/lite"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// What is said is heard, and what nobody says is refused: ports that are the listener's own
// or beyond its sessions, hellos too long, what is no JSON.
func TestBothEndsUnderstandEachOther(t *testing.T) {
	q := question{Hello: []byte("0123456789abcdef"), Name: "w", Window: 7}
	if got, err := parseQuestion(encode(q)); err != nil || string(got.Hello) != string(q.Hello) || got.Name != q.Name ||
		got.Window != q.Window {
		t.Errorf("%+v, %v", got, err)
	}
	a := answer{Port: 3, Name: "v", Window: 9}
	if got, err := parseAnswer(encode(a), 3); err != nil || got != a {
		t.Errorf("%+v, %v", got, err)
	}
	q.Hello = append(q.Hello, 0)
	for _, bad := range [][]byte{nil, []byte("{"), []byte(`{"Hello":3}`), encode(q)} {
		expect.Is(t, fmt.Sprintf("asked %q", bad), expect.Err(parseQuestion(bad)), rdma.ErrProtocol)
	}
	for _, bad := range [][]byte{nil, []byte(`[]`), encode(answer{}), encode(answer{Port: -1}),
		encode(answer{Port: 4})} {
		expect.Is(t, fmt.Sprintf("answered %q", bad), expect.Err(parseAnswer(bad, 3)), rdma.ErrProtocol)
	}
	expect.Is(t, "refused", expect.Err(parseAnswer(encode(answer{Refuse: "full"}), 3)), rdma.ErrUnreachable)
}

func TestPortsAreOfOneSession(t *testing.T) {
	p := newPorts(2)
	for want := 1; want <= 2; want++ {
		if n, err := p.take(); n != want || err != nil {
			t.Errorf("port %d, %v, want %d", n, err, want)
		}
	}
	if n, err := p.take(); !errors.Is(err, rdma.ErrQueueFull) {
		t.Errorf("a third: %d, %v", n, err)
	}
	p.give(1)
	if n, err := p.take(); n != 1 || err != nil {
		t.Errorf("a port that was given back: %d, %v", n, err)
	}
}

func TestErrorsAreTheWaists(t *testing.T) {
	other := errors.New("other")
	for err, want := range map[error]error{lite.ErrPeerDead: rdma.ErrUnreachable,
		lite.ErrDeadHandle: rdma.ErrUnreachable, lite.ErrBounds: rdma.ErrInvalid,
		lite.ErrTooBig: rdma.ErrInvalid, rdma.ErrQueueFull: rdma.ErrQueueFull,
		fmt.Errorf("map: %w", lite.ErrNoMember): rdma.ErrUnreachable, other: other} {
		if got := postError(err); !errors.Is(got, want) {
			t.Errorf("%v is told as %v, want %v", err, got, want)
		}
	}
	if postError(nil) != nil {
		t.Error("nothing is told as something")
	}
}

func TestConfigurationsAreChecked(t *testing.T) {
	caps := transports.Caps{MaxDepth: 4, MaxReadDepth: 2}
	if cfg, err := normal(transports.Config{Window: 1}, caps); err != nil || cfg.SendDepth != 1 || cfg.RecvDepth != 1 {
		t.Errorf("%+v, %v", cfg, err)
	}
	for _, bad := range []transports.Config{{}, {Window: 1, SendDepth: 5}, {Window: 1, RecvDepth: 5},
		{Window: 1, MaxInline: 1}, {Window: 1, ReadDepth: 3}} {
		expect.Is(t, fmt.Sprintf("%+v", bad), expect.Err(normal(bad, caps)), rdma.ErrInvalid)
	}
	expect.Is(t, "events", expect.Err(normal(transports.Config{Window: 1, Events: true}, caps)), rdma.ErrNotSupported)
}

// Every operation on a window has a name in LITE, and its end the name that it began with.
func TestOperationsKeepTheirNames(t *testing.T) {
	for k := transports.Kind(0); k < 32; k++ {
		kind, atomic, ok := oneSided(k)
		want := k == transports.KindWrite || k == transports.KindRead || k == transports.KindFetchAdd ||
			k == transports.KindCmpSwap
		if ok != want || atomic != (k == transports.KindFetchAdd || k == transports.KindCmpSwap) {
			t.Errorf("%v: %v, atomic %v", k, ok, atomic)
		}
		if d := doneOf(&lite.Done{Slot: 5, Len: 6, Kind: kind}); ok && (d.Kind != k || d.Slot != 5 || d.Len != 6) {
			t.Errorf("%v ends as %+v", k, d)
		}
	}
}

// Whatever a member of the cluster says, it is understood or refused.
func FuzzSetUp(f *testing.F) {
	f.Add(encode(question{Hello: []byte("h"), Name: "w", Window: 1}))
	f.Add(encode(answer{Port: 1, Name: "w", Window: 1}))
	f.Add(encode(answer{Refuse: "no"}))
	f.Fuzz(func(t *testing.T, b []byte) {
		if q, err := parseQuestion(b); err == nil && len(q.Hello) > maxHello {
			t.Errorf("a hello of %d bytes", len(q.Hello))
		}
		if a, err := parseAnswer(b, 8); err == nil && (a.Port < 1 || a.Port > 8 || a.Refuse != "") {
			t.Errorf("%+v", a)
		}
	})
}

type fakeNode struct {
	Node
	closed int
}

func (n *fakeNode) Close() error {
	n.closed++
	return nil
}

func TestOneNodeServesAllUsesOfAnAddress(t *testing.T) {
	var s Nodes
	opened := 0
	n := &fakeNode{}
	open := func() (Node, error) { opened++; return n, nil }
	a, errA := s.Join(t.Context(), "x", open)
	b, errB := s.Join(t.Context(), "x", open)
	expect.OK(t, errors.Join(errA, errB))
	seen := 0
	s.Joined(func(Node) { seen++ })
	if a != b || opened != 1 || seen != 1 {
		t.Errorf("two uses opened %d nodes, %d are joined", opened, seen)
	}
	if err := a.Done(); err != nil || n.closed != 0 {
		t.Errorf("closed %d times with a use left, %v", n.closed, err)
	}
	if err := b.Done(); err != nil || n.closed != 1 {
		t.Errorf("closed %d times without a use, %v", n.closed, err)
	}
	if c, err := s.Join(t.Context(), "x", open); err != nil || c == a || opened != 2 {
		t.Errorf("the next use opened %d nodes in all, %v", opened, err)
	}
}

func TestANodeThatFailsToOpenIsForgotten(t *testing.T) {
	var s Nodes
	failed := errors.New("failed")
	expect.Is(t, "join", expect.Err(s.Join(t.Context(), "x", func() (Node, error) { return nil, failed })), failed)
	s.Joined(func(Node) { t.Error("it is joined") })
	expect.OK(t, expect.Get(s.Join(t.Context(), "x", func() (Node, error) { return &fakeNode{}, nil }))(t).Done())
}

// A dialler that gives up while another one opens the node leaves that one its node; where the
// other one gave up, too, the node is closed.
func TestADiallerThatGivesUpLeavesNoNode(t *testing.T) {
	for _, alone := range []bool{false, true} {
		var s Nodes
		n := &fakeNode{}
		opening, goOn := make(chan struct{}), make(chan struct{})
		first := make(chan *Shared)
		go func() {
			x, err := s.Join(context.Background(), "x", func() (Node, error) {
				close(opening)
				<-goOn
				return n, nil
			})
			if err != nil {
				t.Error(err)
			}
			first <- x
		}()
		<-opening
		if alone {
			s.mu.Lock()
			s.joined["x"].uses = 0
			s.mu.Unlock()
			close(goOn)
		}
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		x, err := s.Join(ended, "x", nil)
		if !alone {
			close(goOn)
		}
		switch shared := <-first; {
		case err == nil: // both were ready
			if err := x.Done(); err != nil || !alone || n.closed != 1 {
				t.Errorf("closed %d times, %v", n.closed, err)
			}
		case !errors.Is(err, context.Canceled):
			t.Error(err)
		case alone && n.closed != 1:
			t.Errorf("alone, closed %d times", n.closed)
		case !alone:
			if n.closed != 0 {
				t.Error("it is closed though it is used")
			}
			if err := shared.Done(); err != nil || n.closed != 1 {
				t.Errorf("closed %d times, %v", n.closed, err)
			}
		}
	}
}
