package mesh

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/arms"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/allreduce/steps"
	"github.com/rdmaperf/rdmaperf/transports/memdev"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// bench is rank 0, with an arm and a vector: 1 is to be added, 2 is where the sum goes, 10 what arrives.
func bench(t *testing.T, name string, n int, cfg Config) (m *Mesh, arm arms.Arm, v *vector) {
	t.Helper()
	closed := func(what io.Closer) { t.Cleanup(func() { must(t, what.Close()) }) }
	dev, err := memdev.NewFabric(memdev.Config{}).Open("a")
	must(t, err)
	closed(dev)
	m, err = Open(dev, "a:0", cfg)
	must(t, err)
	closed(m)
	t.Cleanup(func() { clear(m.peers) })
	must(t, m.Reserve(n*elem))
	arm, err = arms.New(name, arms.Settings{Reg: dev, Access: rdma.LocalWrite | rdma.RemoteWrite, Pages: rdma.PagesBase,
		Piece: 1 << 20, Deferred: 1 << 20})
	must(t, err)
	closed(arm) // with nothing held
	take := func(each float32) rdma.Buffer {
		b, err := arm.Take(n * elem)
		must(t, err)
		t.Cleanup(func() { arm.Give(b) })
		set(b, each)
		return b
	}
	set(m.temp, 10)
	return m, arm, &vector{in: take(1), out: take(2)}
}

func set(b rdma.Buffer, each float32) {
	for i, f := 0, Floats(b.Bytes()); i < len(f); i++ {
		f[i] = each
	}
}

func last(b rdma.Buffer) float32 { return Floats(b.Bytes())[b.Len()/elem-1] }

func stepsOf(t *testing.T, algorithm string, p, n int) []steps.Step {
	t.Helper()
	list, err := steps.Of(algorithm, 0, p, n)
	must(t, err)
	return list
}

type sentWRs struct {
	rdma.QP
	got   []rdma.SendWR
	calls int
}

func (s *sentWRs) PostSend(wrs []rdma.SendWR) (int, error) {
	s.got = append(s.got, wrs...)
	s.calls++
	return len(wrs), nil
}

type post struct {
	at    uint64
	n     int
	first float32
}

func (s *sentWRs) writes(b rdma.Buffer) (all []post) {
	for _, w := range s.got {
		if w.Op == rdma.OpWrite {
			off := int(w.SGE[0].Addr - b.Addr())
			all = append(all, post{w.RemoteAddr, int(w.SGE[0].Len), Floats(b.Bytes()[off:])[0]})
		}
	}
	return all
}

func peerOf(m *Mesh, rank int) (*peer, *sentWRs) {
	qp := &sentWRs{}
	m.peers[rank] = &peer{rank: rank, qp: qp, headBase: 8 << 10}
	return m.peers[rank], qp
}

func (x *exchange) turned(t *testing.T, what string, want bool) {
	t.Helper()
	if done, err := x.turn(); done != want || err != nil {
		t.Fatalf("%s: done %v, %v", what, done, err)
	}
}

// Short bytes are gathered from memory whose registration is kept, where a copy costs more; the sum waits for their
// return.
func TestKeptMemoryIsSentFromWhereItLies(t *testing.T) {
	const n = 4 * lendFrom / elem // elements: a half is twice as long as needed
	for _, c := range []struct {
		arm   string
		n     int
		loans bool
	}{{arms.None, n, false}, {arms.Cache, n, true}, {arms.Prereg, n, true}, {arms.Lazy, n, true},
		{arms.Cache, 2*lendFrom/elem - 2, false}, {arms.Cache, 2 * lendFrom / elem, true}} {
		t.Run(c.arm, func(t *testing.T) {
			m, arm, v := bench(t, c.arm, c.n,
				Config{Size: 2, Eager: 64 << 10, Segment: 4096, Timeout: 20 * time.Millisecond})
			p, qp := peerOf(m, 1)
			list := stepsOf(t, "halving", 2, c.n)
			bytes := c.n * elem / 2
			for i := range 2 {
				must(t, m.exchange(t.Context(), list[0], v, arm).sendShort())
				wr := qp.got[i]
				want, sges := headLen, uint8(2)
				if !c.loans {
					want, sges = headLen+bytes, 1
				}
				if wr.NumSGE != sges || int(wr.SGE[0].Len) != want || wr.ID != id(1, whatEager, i) ||
					wr.Len() != uint64(headLen+bytes) {
					t.Errorf("message %d: %d pieces, the first of %d bytes, %d in all, id %x", i, wr.NumSGE,
						wr.SGE[0].Len, wr.Len(), wr.ID)
				}
				if c.loans && wr.SGE[1].Addr != v.in.Addr()+uint64(list[0].Send.Off*elem) {
					t.Errorf("message %d is not gathered from the vector", i)
				}
			}
			if !c.loans {
				if err := m.returned(t.Context()); err != nil {
					t.Errorf("copied bytes are the user's at once: %v", err)
				}
				return
			}
			for i := range 2 {
				if err := m.returned(t.Context()); err == nil ||
					!strings.HasPrefix(err.Error(), "send to rank 1: nothing for") {
					t.Errorf("%d of 2 messages are done: %v", i, err)
				}
				must(t, m.take(&rdma.WC{ID: id(1, whatEager, i)}))
			}
			if err := m.returned(t.Context()); err != nil || p.eager != 0 {
				t.Errorf("all are done, and %d under way: %v", p.eager, err)
			}
			// A sum that fails gives back what it left, else the arm does not close.
			if err := m.Reduce(t.Context(), list, v.in, v.out, arm); err == nil ||
				err.Error() != "receive from rank 1: nothing for 20ms" || p.lent != 0 {
				t.Errorf("beside a silent rank %d are lent: %v", p.lent, err)
			}
		})
	}
}

// Recursive doubling adds to what it sends: a long vector waits for that send, a short one is copied.
func TestNothingIsAddedToWhatIsBeingSent(t *testing.T) {
	const n = 2 * lendFrom / elem
	list := stepsOf(t, "doubling", 4, n)
	for what, eager := range map[string]int{"long": 64, "short": 64 << 10} {
		for i, s := range list {
			t.Run(fmt.Sprintf("%s, step %d", what, i), func(t *testing.T) {
				m, arm, v := bench(t, arms.Cache, n, Config{Size: 4, Eager: eager, Segment: n * elem,
					Timeout: short.Timeout})
				if i > 0 {
					v.fill(list[0])
				}
				p, _ := peerOf(m, s.SendTo)
				x := m.exchange(t.Context(), s, v, arm)
				if what == "short" {
					must(t, x.sendShort())
					if lent := p.lent == 1; lent != (i == 0) {
						t.Errorf("lent %v", lent)
					}
				} else {
					x.from, x.left, x.inlen, x.limit, x.dst = p, x.in, x.in, x.out, m.temp.Bytes()
					must(t, x.prepare(v.of(s.Send)))
					p.clears = append(p.clears, head{kind: kindClear, length: n * elem, addr: 1 << 20})
					p.there = append(p.there, head{kind: kindThere, length: n * elem})
					before := last(v.out)
					x.turned(t, "while it is sent", false)
					if added := last(v.out) != before; added != (i == 0) {
						t.Errorf("added %v before its send is done", added)
					}
					p.done = p.posted
					x.turned(t, "after it was sent", true)
					if got, want := last(v.out), float32(11+i); got != want {
						t.Errorf("the sum is %v, want %v", got, want)
					}
				}
				must(t, x.put())
				must(t, m.backAll())
			})
		}
	}
}

// The second step's first segment leaves before the first step has the rest, not before the peer said where to.
func TestASegmentGoesOnAsSoonAsItIsAdded(t *testing.T) {
	const segment, n = 256, 256 // bytes; elements: two segments a half
	m, arm, v := bench(t, arms.None, n, Config{Size: 2, Segment: segment, Timeout: short.Timeout})
	list := stepsOf(t, "halving", 2, n)
	x, next := m.exchange(t.Context(), list[0], v, arm), m.exchange(t.Context(), list[1], v, arm)
	p, qp := peerOf(m, 1)
	x.from, x.left, x.inlen, x.at, x.next, x.limit = p, x.in, x.in, x.step.Recv.Off*elem, next, x.out
	x.dst = m.temp.Bytes()
	for _, half := range []struct {
		x  *exchange
		of rdma.Buffer
	}{{x, v.in}, {next, v.out}} {
		must(t, half.x.prepare(half.of))
		defer func() { must(t, half.x.put()) }()
	}
	of := v.in
	look := func(what string, want ...post) {
		t.Helper()
		qp.got, qp.calls = qp.got[:0], 0
		x.turned(t, what, false)
		if got := qp.writes(of); !slices.Equal(got, want) || qp.calls != min(len(want), 1) {
			t.Fatalf("%s: %+v in %d calls, want %+v in one", what, got, qp.calls, want)
		}
	}
	there := head{kind: kindThere, length: segment}
	clear := head{kind: kindClear, length: n * elem / 2, addr: 1 << 20}
	look("nothing is said")
	p.there = append(p.there, there)
	look("a segment is there, and nobody said where to")
	p.clears = append(p.clears, clear)
	look("the first clear is of this step", post{1 << 20, segment, 1}, post{1<<20 + segment, segment, 1})
	of = v.out
	clear.addr = 2 << 20
	p.clears = append(p.clears, clear)
	look("the next step's first segment", post{2 << 20, segment, 11})
	look("no more is there")
	p.there = append(p.there, there)
	look("the rest of it", post{2<<20 + segment, segment, 11})
	if x.left != 0 || p.posted != 2 || x.done != 1 || next.done != 2 {
		t.Errorf("%d bytes left, %d begun, done at %d and %d", x.left, p.posted, x.done, next.done)
	}
	p.done = 1
	x.turned(t, "the step is done when its own message is", true)
}

// What is added arrives where the sum goes, or aside where that holds something or nobody keeps registrations.
func TestWhatIsAddedArrivesInPlace(t *testing.T) {
	const n = 256 // elements
	list := stepsOf(t, "doubling", 4, n)
	for arm, place := range map[string][]bool{arms.None: {false, false}, arms.Cache: {true, false},
		arms.Prereg: {true, false}, arms.Lazy: {true, false}} { // of each step
		t.Run(arm, func(t *testing.T) {
			m, arm, v := bench(t, arm, n, Config{Size: 4, Eager: 64, Segment: n * elem, Timeout: short.Timeout})
			for i, s := range list {
				p, _ := peerOf(m, s.RecvFrom)
				x := m.exchange(t.Context(), s, v, arm)
				must(t, x.ready())
				h, err := parse(m.buf.Bytes()[p.headBase:][:headLen])
				if err != nil || h.kind != kindClear || h.length != n*elem {
					t.Fatalf("step %d: %+v, %v", i, h, err)
				}
				to, what := m.temp, "aside"
				if place[i] {
					to, what = v.out, "in place"
				}
				if h.addr != to.Addr() {
					t.Errorf("step %d: bytes to be added do not arrive %s", i, what)
				}
				set(to, 10) // the peer's
				p.there = append(p.there, head{kind: kindThere, length: n * elem})
				x.turned(t, "all is there", true)
				must(t, x.put())
				if got, want := last(v.out), float32(11+10*i); got != want {
					t.Errorf("step %d: the sum is %v, want %v", i, got, want)
				}
				v.fill(s)
			}
		})
	}
}

// A message has half as many pieces as its receiver has receives, and fewer where slots are large.
func TestPiecesHaveReceives(t *testing.T) {
	const n = 64 << 10 // elements: 64 pieces of 4 KiB
	for eager, want := range map[int]int{64: 32, 8 << 10: 32, 16 << 10: 32, 32 << 10: 16, 64 << 10: 8, 128 << 10: 8} {
		m, arm, v := bench(t, arms.None, n, Config{Size: 2, Eager: eager, Segment: 4096, Timeout: short.Timeout})
		x := m.exchange(t.Context(), stepsOf(t, "doubling", 2, n)[0], v, arm)
		p, qp := peerOf(m, 1)
		p.clears = []head{{kind: kindClear, length: n * elem, addr: 1 << 20}}
		x.limit = x.out
		must(t, x.prepare(v.in))
		must(t, x.write())
		must(t, x.put())
		if got := len(qp.writes(v.in)); got != want || m.cfg.recvs() < 2*got {
			t.Errorf("eager %d: %d pieces and %d receives, want %d pieces", eager, got, m.cfg.recvs(), want)
		}
	}
}
