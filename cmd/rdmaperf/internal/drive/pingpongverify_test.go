package drive

import (
	"errors"
	"testing"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/transports"
)

// begun is a client's lane of a verified ping-pong, whose next operation has begun.
func begun(t *testing.T, op, arrival string, begin func(*pingPongLane, *roundTrip, *transports.Op)) (*pingPongWorker,
	*pingPongLane, *roundTrip, transports.Op) {
	t.Helper()
	_, w, l := pingPongOn(t, op, engine.SideClient, arrival)
	l.Sh.Verify, l.Sh.Seed = true, 3
	for _, b := range [][]byte{l.Mem[:l.Sh.RxOff()], l.ref.Bytes()} {
		engine.FillPattern(b, engine.PatternState(3, 1, 0, 0))
	}
	r := &roundTrip{}
	var posted transports.Op
	begin(l, r, &posted)
	return w, l, r, posted
}

// Whatever answers an operation is held against what was sent, byte by byte, once its own operations are complete.
func TestAnswersAreHeldAgainstWhatWasSent(t *testing.T) {
	for _, c := range []struct {
		op, arrival string
		x           *exchange
	}{{"send", engine.ArrivalMessage, &messages}, {"send_imm", engine.ArrivalMessage, &messages},
		{"write_imm", engine.ArrivalMessage, &messages}, {"write", engine.ArrivalMemory, &writes},
		{"read", engine.ArrivalCompletion, &reads}} {
		for _, bent := range []int{-1, 0, 40, 63} {
			w, l, r, op := begun(t, c.op, c.arrival, c.x.begin)
			r.slot, r.length, r.imm, r.hasImm = 1, 64, 1, c.op != "send"
			copy(l.Mem[l.at(1):], l.ref.Bytes()[r.off:r.off+64])
			if bent >= 0 {
				l.Mem[l.at(1)+bent] ^= 4
			}
			err := c.x.verify(w, l, r)
			var bad *engine.CorruptionError
			if (err != nil) != (bent >= 0) || err != nil && (!errors.As(err, &bad) || bad.Offset != bent ||
				bad.Got^bad.Want != 4) {
				t.Errorf("%s, byte %d changed: %v", c.op, bent, err)
			}
			if w.Compared.Messages != 1 || w.Compared.Bytes != 64 || op.Len != 64 {
				t.Errorf("%s: compared %+v of %d bytes", c.op, w.Compared, op.Len)
			}
		}
	}
}

// What came in another way than it should is found before its bytes are compared, and nothing is
// looked at while an operation is under way that may fail.
func TestAnswersComeAsTheyShould(t *testing.T) {
	for name, c := range map[string]struct {
		op     string
		change func(r *roundTrip)
		want   int
	}{
		"as it should":         {"write_imm", func(*roundTrip) {}, reports.ExitOK},
		"as it should be sent": {"send", func(*roundTrip) {}, reports.ExitOK},
		"another number":       {"write_imm", func(r *roundTrip) { r.imm++ }, reports.ExitCorruption},
		"no number":            {"write_imm", func(r *roundTrip) { r.hasImm = false }, reports.ExitCorruption},
		"another number sent":  {"send_imm", func(r *roundTrip) { r.imm++ }, reports.ExitCorruption},
		"too short":            {"send", func(r *roundTrip) { r.length-- }, reports.ExitFailed},
	} {
		w, l, r, _ := begun(t, c.op, engine.ArrivalMessage, beginMessage)
		r.slot, r.length, r.imm, r.hasImm = 1, 64, 1, c.op != "send"
		copy(l.Mem[l.at(1):], l.ref.Bytes()[r.off:r.off+64])
		c.change(r)
		if err := verifyMessage(w, l, r); reports.Code(err) != c.want {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, verify := range []func(*pingPongWorker, *pingPongLane, *roundTrip) error{verifyMessage, verifyWrite} {
		p, w, l := pingPongOn(t, "write", engine.SideClient, engine.ArrivalMemory)
		l.out, p.lost = 1, errBroken
		if err := verify(w, l, &roundTrip{length: 64}); !errors.Is(err, errBroken) {
			t.Errorf("an operation that did not end: %v", err)
		}
	}
}

// Operations are counted from one on; atomics fetch the number of those before.
func TestOperationsOfAPingPongAreCounted(t *testing.T) {
	for _, begin := range []func(*pingPongLane, *roundTrip, *transports.Op){beginMessage, beginWrite, beginRead,
		beginAtomic} {
		_, _, l := pingPongOn(t, "cmp_swap", engine.SideClient, engine.ArrivalCompletion)
		for n := uint64(1); n < 40; n++ {
			var r roundTrip
			var op transports.Op
			begin(l, &r, &op)
			if r.iter != n || r.at != l.at(n) || r.off != 0 && r.off != l.source(n) {
				t.Errorf("operation %d is %+v", n, r)
			}
			if op.Swap != 0 && (op.Add != n-1 || op.Swap != n) {
				t.Errorf("swap %d of %d for %d", n, op.Add, op.Swap)
			}
		}
	}
}
