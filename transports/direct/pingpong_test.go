package direct

import (
	"testing"

	"github.com/rdmaperf/rdmaperf/transports"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// step takes one step and requires that it is met.
func step(t *testing.T, s *session, v *transports.PingPongStep, n int) []transports.Done {
	t.Helper()
	dst := make([]transports.Done, 8)
	vs := []transports.PingPongStep{*v}
	k, err := s.PingPong(vs, dst)
	*v = vs[0]
	if err != nil || !v.Met || k != n {
		t.Fatalf("step: %d done, met %v, %v; want %d", k, v.Met, err, n)
	}
	return dst[:k]
}

// A ping and a pong on one device after the other: the books of both queues stay
// right, whichever way an operation came in.
func TestPingPongKeepsTheBooks(t *testing.T) {
	const depth = 3
	r := newRig(t, nil, transports.Config{Window: 256, SendDepth: depth, RecvDepth: 2})
	for i := range 5 * depth {
		for _, s := range []*session{r.near, r.far} {
			if n, err := s.Post([]transports.Op{{Kind: transports.KindRecv, Local: 128, Len: 64, Slot: 7}}); n != 1 {
				t.Fatal(err)
			}
		}
		copy(r.near.Local(), []byte{byte(i), 1, 2, 3})
		ask := transports.PingPongStep{Ask: transports.Op{Kind: transports.KindSend, Len: 4, Slot: 5}, HasAsk: true,
			Until: rdma.UntilSend, Looks: 10}
		if d := step(t, r.near, &ask, 1)[0]; ask.HasAsk || ask.Took < 0 || d.Slot != 5 ||
			d.Kind != transports.KindSend {
			t.Errorf("ask %+v, done %+v", ask, d)
		}
		answer := transports.PingPongStep{Answer: transports.Op{Kind: transports.KindSend, Local: 128, Len: 4, Slot: 6},
			HasAnswer: true, Until: rdma.UntilRecv, Slot: 7, Looks: 10}
		if d := step(t, r.far, &answer, 1)[0]; answer.HasAnswer || d.Slot != 7 || d.Kind != transports.KindRecv ||
			d.Len != 4 {
			t.Errorf("answer %+v, done %+v", answer, d)
		}
		collect(t, r.far, 1)
		collect(t, r.near, 1)
		if got := r.near.Local()[128]; got != byte(i) {
			t.Errorf("echo %d has %d", i, got)
		}
		if r.near.inUse != 0 || r.far.inUse != 0 || r.near.recvInUse != 0 || r.far.recvInUse != 0 {
			t.Fatalf("in use %d, %d; receives %d, %d; want none", r.near.inUse, r.far.inUse, r.near.recvInUse,
				r.far.recvInUse)
		}
	}
}

// An answer is refused that has no room, that names what is not there, or that is
// not for this message; the wait for a byte needs a byte of the window.
func TestStepsThatAreNotTaken(t *testing.T) {
	r := newRig(t, nil, transports.Config{Window: 256, SendDepth: 1, RecvDepth: 2})
	dst := make([]transports.Done, 8)
	write := transports.Op{Kind: transports.KindWrite, Len: 1}
	for name, c := range map[string]struct {
		v    transports.PingPongStep
		want error
	}{
		"watch outside": {transports.PingPongStep{Until: rdma.UntilByte, Watch: 256, Looks: 1}, rdma.ErrInvalid},
		"ask outside": {transports.PingPongStep{Ask: transports.Op{Kind: transports.KindWrite, Remote: 256, Len: 1},
			HasAsk: true, Looks: 1}, rdma.ErrInvalid},
		"answer outside": {transports.PingPongStep{Answer: transports.Op{Kind: transports.KindWrite, Local: 256,
			Len: 1}, HasAnswer: true, Looks: 1}, rdma.ErrInvalid},
		"a call": {transports.PingPongStep{Ask: transports.Op{Kind: transports.KindCall}, HasAsk: true,
			Looks: 1}, rdma.ErrNotSupported},
	} {
		if n, err := r.near.PingPong([]transports.PingPongStep{c.v}, dst); n != 0 || err != c.want ||
			r.near.inUse != 0 {
			t.Errorf("%s: %d, %v, %d in use; want %v", name, n, err, r.near.inUse, c.want)
		}
	}
	if n, err := r.near.Post([]transports.Op{write}); n != 1 {
		t.Fatal(err)
	}
	full := []transports.PingPongStep{{Ask: write, HasAsk: true, Looks: 1}}
	if _, err := r.near.PingPong(full, dst); err != rdma.ErrQueueFull || !full[0].HasAsk {
		t.Errorf("ask in a full queue: %v, want %v", err, rdma.ErrQueueFull)
	}
	late := transports.PingPongStep{Answer: write, HasAnswer: true, Until: rdma.UntilByte, Watch: 0, Was: 1, Looks: 1}
	if n, err := r.near.PingPong([]transports.PingPongStep{late, late}, dst); n != 1 || err != nil || late.Met ||
		!late.HasAnswer {
		t.Errorf("answer in a full queue: %d done, met %v, %v; want the completion that makes room", n, late.Met, err)
	}
	if step(t, r.near, &late, 0); late.HasAnswer {
		t.Error("no answer although there is room")
	}
	collect(t, r.near, 1)
	if err := r.near.qp.Fail(); err != nil {
		t.Fatal(err)
	}
	if _, err := r.near.PingPong(full, dst); err != rdma.ErrState || !full[0].HasAsk {
		t.Errorf("ping-pong in ERR: %v, want %v", err, rdma.ErrState)
	}
}
