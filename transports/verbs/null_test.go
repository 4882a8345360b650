//go:build cgo && linux

package verbs

import (
	"testing"
	"time"

	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

func stepper(t *testing.T) *nullStepper {
	t.Helper()
	q, end := nullQP()
	if q == nil {
		t.Fatal("no null provider")
	}
	t.Cleanup(end)
	return q
}

// A PingPong on the null provider ends at once, again and again.
func TestPingPongOnTheNullProvider(t *testing.T) {
	q := stepper(t)
	for i := range 100 { // more often than the queue is deep
		if ns := q.step(); ns < 0 {
			t.Fatalf("step %d did not end", i)
		}
	}
	if pingPongOverhead() <= 0 {
		t.Error("no overhead was measured")
	}
}

func TestPingPongAllocatesNothing(t *testing.T) {
	q := stepper(t)
	if n := testing.AllocsPerRun(100, func() { q.step() }); n != 0 {
		t.Errorf("%v allocations a step", n)
	}
}

func TestCompletionsNameTheirOperation(t *testing.T) {
	q := stepper(t)
	for op, want := range map[rdma.Opcode]rdma.WCOpcode{rdma.OpSend: rdma.WCSend, rdma.OpSendImm: rdma.WCSend,
		rdma.OpWrite: rdma.WCWrite, rdma.OpWriteImm: rdma.WCWrite, rdma.OpRead: rdma.WCRead,
		rdma.OpFetchAdd: rdma.WCFetchAdd, rdma.OpCmpSwap: rdma.WCCmpSwap} {
		wr := &q.v[0].Ask
		wr.Op, wr.ID, wr.SGE[0].Len = op, 77+uint64(op), atomicSize
		if n, err := q.PostSend([]rdma.SendWR{*wr}); n != 1 || err != nil {
			t.Errorf("%v: posted %d, %v", op, n, err)
			continue
		}
		n, err := q.send.Poll(q.wcs[:])
		if c := q.wcs[0]; n != 1 || err != nil || c.Opcode != want || c.ID != wr.ID || c.Status != rdma.StatusSuccess {
			t.Errorf("%v: %d completions, %v: %+v, want %v", op, n, err, c, want)
		}
		if op.IsAtomic() {
			continue // never in a ping-pong's steps
		}
		if ns := q.step(); ns < 0 || q.wcs[0].Opcode != want || q.wcs[0].ID != wr.ID {
			t.Errorf("%v in a ping-pong: %d ns, %+v, want %v", op, ns, q.wcs[0], want)
		}
	}
}

// A registration has the rights that were asked for, as ibv_reg_mr(3) numbers them, as far
// as an operation of the device could use them.
func TestRightsOfARegistration(t *testing.T) {
	for _, c := range []struct {
		access rdma.Access
		ops    rdma.OpSet
		want   int
	}{
		{0, nullOps, 0},
		{rdma.LocalWrite, nullOps, 1},
		{rdma.LocalWrite | rdma.RemoteWrite, nullOps, 1 | 2},
		{rdma.RemoteRead, nullOps, 4},
		{rdma.LocalWrite | rdma.RemoteAtomic, nullOps, 1 | 8},
		{rdma.LocalWrite | rdma.RemoteWrite | rdma.RemoteRead | rdma.RemoteAtomic, nullOps, 15},
		{rdma.LocalWrite | rdma.RemoteWrite | rdma.RemoteRead | rdma.RemoteAtomic, rdma.Ops(rdma.OpSend, rdma.OpRead),
			1 | 4},
	} {
		if got := int(accessFlags(c.access, c.ops)); got != c.want {
			t.Errorf("rights %v of a device with %v: %#x, want %#x", c.access, c.ops, got, c.want)
		}
	}
}

// the clock of PingPong runs as fast as Go's, and does not go backwards. Each of its
// readings lies between two of Go's, so that a pause cannot fail the test.
func TestTheClockOfPingPongKeepsTime(t *testing.T) {
	pingPongClock() // settles
	base := time.Now()
	from, _ := pingPongClock()
	shortest := time.Now()
	time.Sleep(100 * time.Millisecond)
	inner := time.Since(shortest)
	to, counter := pingPongClock()
	outer := time.Since(base)
	// The slack of 1 in 1000 is ten times what clock.c takes for its worst rate.
	took, slack := time.Duration(to-from), outer/1000
	if took < inner-slack || took > outer+slack {
		t.Errorf("PingPong's clock (counter: %v) says %v, Go's between %v and %v", counter, took, inner, outer)
	}
	for last, i := int64(0), 0; i < 1000; i++ {
		now, _ := pingPongClock()
		if now < last {
			t.Fatalf("%d ns after %d ns", now, last)
		}
		last = now
	}
}
