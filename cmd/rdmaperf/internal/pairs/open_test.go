package pairs

import (
	"errors"
	"testing"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/transports/lite/stack"
	"github.com/rdmaperf/rdmaperf/transports/memdev"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// A second device that cannot be opened is an error, and the first one is closed.
func TestADeviceThatCannotBeOpenedIsAnError(t *testing.T) {
	broken := errors.New("no such device")
	fabric, opened := memdev.NewFabric(memdev.Config{}), 0
	r := &engine.Run{Setup: engine.Setup{Plan: &engine.Plan{Transport: "lite+mem"}}}
	r.Open.Device = func(string) (rdma.Device, error) {
		if opened++; opened%2 == 0 {
			return nil, broken
		}
		return fabric.Open("one") // the name is free again only when the one before is closed
	}
	if p, err := OpenReceiving(t.Context(), r, 1, 1, 0); p != nil || !errors.Is(err, broken) {
		t.Errorf("devices: %v, %v", p, err)
	}
	dev, err := memdev.NewFabric(memdev.Config{}).Open("below")
	if err != nil {
		t.Fatal(err)
	}
	s, err := stack.New(dev, stack.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	r.Stack = s
	if p, err := OpenNodes(t.Context(), r, [2]int{1 << 20, 1 << 20}); p != nil || !errors.Is(err, broken) {
		t.Errorf("nodes: %v, %v", p, err)
	}
}

// counted is a completion queue that has nothing, and counts who asks.
type counted struct {
	rdma.CQ
	polls int
}

func (c *counted) Poll([]rdma.WC) (int, error) { c.polls++; return 0, nil }

// Over sockets nobody else moves the far end.
func TestBothEndsOfNativeAreLookedAt(t *testing.T) {
	near, far := &counted{}, &counted{}
	n := &Native{Devices: &Devices{CQs: [2]rdma.CQ{near, far}}, Both: true}
	for range 10 {
		if _, err := n.Poll(func(int) { t.Error("ended") }); err != nil {
			t.Fatal(err)
		}
	}
	if near.polls != 10 || far.polls != 10 {
		t.Errorf("%d and %d looks, want 10 at each", near.polls, far.polls)
	}
	if err := n.Drive(); err != nil || far.polls != 11 || near.polls != 10 {
		t.Errorf("Drive: %v, %d and %d looks", err, near.polls, far.polls)
	}
}
