package drive

import (
	"encoding/binary"
	"errors"
	"testing"
	"time"

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

// What came in another way than it should is found, and nothing is looked at while an operation may fail.
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

// One operation that the provider takes lasts as long as that says, and ends now.
func TestOneStepInTheProviderIsTimed(t *testing.T) {
	bubble(t, func(t *testing.T) {
		time.Sleep(time.Second) // no time is as long as the clock says
		p, w, l := pingPongOn(t, "read", engine.SideClient, engine.ArrivalCompletion)
		p.steps = func(_ int, vs []transports.PingPongStep) (int, error) {
			if len(vs) != 1 || vs[0].Ask.Kind != transports.KindRead {
				t.Errorf("%d steps, the first %+v, want one read", len(vs), vs[0].Ask)
			}
			met(vs, 1, 300)
			time.Sleep(300)
			return 0, nil
		}
		if t0, t1, err := alone.sample(w, l); err != nil || t1-t0 != 300 || t1 != engine.Now() {
			t.Errorf("%v, %d ns until %d, want 300 until %d", err, t1-t0, t1, engine.Now())
		}
		p.steps = func(_ int, vs []transports.PingPongStep) (int, error) { met(vs, 0, 0); return 0, errBroken }
		if _, _, err := alone.sample(w, l); !errors.Is(err, errBroken) {
			t.Errorf("a session that breaks: %v", err)
		}
	})
}

// A write whose answer a message announces is timed until that; behind it the answer is compared.
func TestAnAnnouncedWriteIsTimed(t *testing.T) {
	ends := []transports.Done{{Kind: transports.KindWrite}, {Kind: transports.KindSend}}
	for name, c := range map[string]struct {
		script func(p *puppet, l *pingPongLane, poll int)
		room   int // for posts
		fine   bool
		is     error
		code   int
	}{
		"answered": {func(p *puppet, l *pingPongLane, poll int) {
			switch poll {
			case 1:
				copy(l.Mem[l.at(1):], l.ref.Bytes()[l.source(1):][:l.Sh.Size])
				p.done = append(p.done, came(5, 1, 0)...)
			case 2:
				p.done = append(p.done, ends...)
			}
		}, -1, true, nil, 0},
		"refused": {nil, 1, false, errBroken, reports.ExitFailed},
		"lost": {func(p *puppet, l *pingPongLane, poll int) {
			p.lost = errBroken
		}, -1, false, errBroken, reports.ExitFailed},
		"its own end is lost": {func(p *puppet, l *pingPongLane, poll int) {
			p.done = append(p.done, came(5, 1, 0)...)
			if p.lost = errBroken; poll > 1 {
				p.done = nil
			}
		}, -1, false, errBroken, reports.ExitFailed},
		"changed": {func(p *puppet, l *pingPongLane, poll int) {
			p.done = append(append(p.done, came(5, 1, 0)...), ends...)
		}, -1, false, nil, reports.ExitCorruption},
		"its receive is refused": {func(p *puppet, l *pingPongLane, poll int) {
			copy(l.Mem[l.at(1):], l.ref.Bytes()[l.source(1):][:l.Sh.Size])
			p.done = append(append(p.done, came(5, 1, 0)...), ends...)
		}, 2, false, errBroken, reports.ExitFailed},
	} {
		bubble(t, func(t *testing.T) {
			time.Sleep(time.Second)
			p, w, l := pingPongOn(t, "write", engine.SideClient, engine.ArrivalNotify)
			l.Sh.Verify, p.room, p.refuse = true, c.room, errBroken
			p.onPoll = func(poll int) {
				time.Sleep(700)
				c.script(p, l, poll)
			}
			t0, t1, err := notifySample(w, l)
			if (err == nil) != c.fine || c.is != nil && !errors.Is(err, c.is) || reports.Code(err) != c.code &&
				c.code == reports.ExitCorruption {
				t.Errorf("%s: %v", name, err)
			}
			if !c.fine {
				return
			}
			if t1-t0 != 700 || len(p.posted) != 3 || w.Compared.Messages != 1 || l.out != 0 {
				t.Fatalf("%d ns, posted %+v, %+v compared, %d outstanding", t1-t0, p.posted, w.Compared, l.out)
			}
			if write, say := p.posted[0], p.posted[1]; write.Kind != transports.KindWrite ||
				write.Remote != uint64(l.at(1)) || write.Len != 64 ||
				say != (transports.Op{Kind: transports.KindSend}) || p.posted[2] != l.recvs[5] {
				t.Errorf("posted %+v, want the write, what announces it, and the receive", p.posted)
			}
		})
	}
}

// An atomic fetches the number of those before it, which another one is not.
func TestAtomicsOfAPingPong(t *testing.T) {
	for _, op := range []string{"fetch_add", "cmp_swap"} {
		_, w, l := pingPongOn(t, op, engine.SideClient, engine.ArrivalCompletion)
		l.Sh.Verify = true
		for n := uint64(1); n < 40; n++ {
			var r roundTrip
			var got transports.Op
			beginAtomic(l, &r, &got)
			want := transports.Op{Kind: transports.KindFetchAdd, Local: uint64(l.at(n)), Remote: uint64(l.Sh.RxSlot(0)),
				Len: 8, Add: 1}
			if op == "cmp_swap" {
				want.Kind, want.Add, want.Swap = transports.KindCmpSwap, n-1, n
			}
			if got != want {
				t.Errorf("%s %d: %+v, want %+v", op, n, got, want)
			}
			for old, code := range map[uint64]int{n - 1: 0, n: reports.ExitCorruption, n + 1: reports.ExitCorruption} {
				binary.NativeEndian.PutUint64(l.Mem[r.at:], old)
				if err := verifyAtomic(w, l, &r); reports.Code(err) != code {
					t.Errorf("%s %d that fetched %d: %v", op, n, old, err)
				}
			}
		}
		if w.Compared.Messages != 3*39 || w.Compared.Bytes != 8*3*39 {
			t.Errorf("%s: compared %+v, want each", op, w.Compared)
		}
	}
}

// Any byte of a message that is not its own is named, in its number and behind it, at any length.
func TestMatchMessageNamesTheByte(t *testing.T) {
	const number = 0x0102030405060708
	state := engine.PatternState(3, 1, 2, 3)
	for size := range 40 {
		b := make([]byte, size)
		engine.FillPattern(b, state)
		PutNumber(b, number)
		if i, _ := matchMessage(b, number, state); i >= 0 {
			t.Fatalf("%d bytes: byte %d differs", size, i)
		}
		for i, right := range b {
			b[i] ^= 0x40
			if at, want := matchMessage(b, number, state); at != i || want != right {
				t.Fatalf("%d bytes, byte %d changed: %d, %#x, want %#x", size, i, at, want, right)
			}
			b[i] = right
		}
	}
}
