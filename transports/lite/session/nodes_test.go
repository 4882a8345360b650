package session

import (
	"context"
	"errors"
	"testing"

	"github.com/rdmaperf/rdmaperf/internal/expect"
)

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
