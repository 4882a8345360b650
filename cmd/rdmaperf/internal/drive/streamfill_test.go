package drive

import (
	"bytes"
	"errors"
	"testing"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/transports"
)

// A message is written whole where both sides know that it is compared whole, of writes in passes
// that are looked at; else its number alone. Immediates are where they belong.
func TestMessagesAreWrittenAsTheyAreCompared(t *testing.T) {
	for _, op := range []string{"send", "send_imm", "write", "write_imm"} {
		_, _, _, l := streamOn(op, func(sh *engine.Shape) { sh.Verify = true })
		fill := filler(l.Sh)
		l.gen, l.First = engine.GenMeasure, 8*5
		whole, bare := 0, 0
		first := int64(l.First / 8)
		for pass := range 402 - first {
			if pass+first > 400 { // and a pass that is looked at
				pass = int64(looked(l.Sh)) - first
			}
			ops := l.Ops[:8]
			for i := range ops {
				copy(l.Mem[ops[i].Local:], bytes.Repeat([]byte{0xee}, 100))
			}
			l.Posted = 8 * pass
			fill(l, ops)
			for i, o := range ops {
				n := l.First + uint64(l.Posted) + uint64(i)
				want := bytes.Repeat([]byte{0xee}, 100)
				if all := l.Sh.Whole(l.gen, n) || op == "write" && l.Sh.LooksAt(n/8); all {
					whole++
					l.Write(want, l.gen, n, true)
				} else {
					bare++
					l.Write(want, l.gen, n, false)
				}
				if !bytes.Equal(l.Mem[o.Local:][:100], want) {
					t.Fatalf("%s: message %d is not what is compared", op, n)
				}
				if imm := uint32(n); (op == "send_imm" || op == "write_imm") && o.Imm != imm || (op == "send" || op == "write") && o.Imm != 0 {
					t.Fatalf("%s: message %d has the immediate %d", op, n, o.Imm)
				}
			}
		}
		if whole == 0 || bare == 0 {
			t.Errorf("%s: %d whole, %d not", op, whole, bare)
		}
	}
}

// Where nothing is compared, immediates and what is swapped count on all the same; a read asks for
// another slot in each pass where it is.
func TestWhatIsSetInEveryOperation(t *testing.T) {
	fill := func(op string, verify bool) (*streamLane, []transports.Op) {
		_, _, _, l := streamOn(op, func(sh *engine.Shape) { sh.Verify = verify })
		l.Messages, l.Posted = 50, 21
		f := filler(l.Sh)
		if f == nil {
			return l, nil
		}
		f(l, l.Ops[:3])
		return l, l.Ops[:3]
	}
	for _, op := range []string{"send_imm", "write_imm"} {
		if _, ops := fill(op, false); ops[0].Imm != 50 || ops[2].Imm != 52 {
			t.Errorf("%s: %d and %d", op, ops[0].Imm, ops[2].Imm)
		}
	}
	for _, verify := range []bool{false, true} {
		if _, ops := fill("cmp_swap", verify); ops[0].Add != 21 || ops[0].Swap != 22 || ops[2].Add != 23 || ops[2].Swap != 24 {
			t.Errorf("%+v", ops)
		}
		if _, ops := fill("fetch_add", verify); ops != nil {
			t.Errorf("%+v, want what is prepared", ops)
		}
	}
	for _, op := range []string{"send", "write", "read"} {
		if _, ops := fill(op, false); ops != nil {
			t.Errorf("%s: %+v, want what is prepared", op, ops)
		}
	}
	l, ops := fill("read", true)
	for i, o := range ops {
		if want := uint64(l.Sh.ReadFrom(uint64(21+i)) * 128); o.Remote != want {
			t.Errorf("read %d is of %d, want %d", i, o.Remote, want)
		}
	}
}

// A barrier whose answer is lost fails what was else all well.
func TestALostBarrierIsTold(t *testing.T) {
	p, s, w, l := streamOn("write", nil)
	if err := s.Prepare(engine.GenMeasure); err != nil {
		t.Fatal(err)
	}
	p.complete()
	p.onPoll = func(int) {
		for _, op := range p.complete() {
			if op.Kind == transports.KindSend {
				p.done, p.lost = nil, errBroken
			}
		}
	}
	w.Lim.Ops = 9
	if err := s.Loop(w.Worker)(); !errors.Is(err, errBroken) || !l.Fenced {
		t.Errorf("%v, want %v", err, errBroken)
	}
}
