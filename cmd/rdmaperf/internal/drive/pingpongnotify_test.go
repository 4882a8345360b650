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

// A write whose answer a message announces is timed from before it is posted until that message;
// behind that its own operations end, its bytes are compared and the receive is posted again.
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
