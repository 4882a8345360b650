//go:build lwip && cgo

package iwarp

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/rdmaperf/rdmaperf/softstack/lwip"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// byReference is a pair over links that send by reference.
func byReference(t *testing.T, below lwip.Config, cfg Config, qcfg rdma.QPConfig) (a, b *end) {
	t.Helper()
	below.ByReference = true
	s, err := lwip.Open(below)
	if errors.Is(err, lwip.ErrCopies) {
		t.Skipf("%v", err)
	}
	must(t, err)
	cfg.Stack = s
	return pair(t, cfg, qcfg)
}

// private is a registration of memory of its own.
type private struct {
	buf rdma.Buffer
	mr  rdma.MR
}

func (e *end) private(n int) private {
	e.t.Helper()
	buf := need(rdma.Alloc(n))(e.t)
	mr := need(e.dev.RegMR(0, buf, rdma.LocalWrite|rdma.RemoteWrite|rdma.RemoteRead))(e.t)
	return private{buf, mr}
}

// gone ends the registration and unmaps its memory: who reads it now dies of it.
func (p private) gone(t testing.TB) {
	t.Helper()
	must(t, p.mr.Close())
	must(t, p.buf.Free())
}

func (p private) sge(n int) [4]rdma.SGE {
	return [4]rdma.SGE{{Addr: p.mr.Addr(), Len: uint32(n), LKey: p.mr.LKey()}}
}

// Memory of writes and sends is overwritten or unmapped once they are complete, and a read's source once that is done.
func TestByReferenceMemoryIsTheUsersBehindItsCompletion(t *testing.T) {
	for name, c := range map[string]struct {
		below lwip.Config
		cfg   Config
		loops int
	}{
		"clean":          {loops: 400},
		"nocrc":          {cfg: Config{NoCRC: true}, loops: 200},
		"markers":        {cfg: Config{Markers: true}, loops: 100},
		"sequential":     {below: lwip.Config{Sequential: true}, loops: 100},
		"receive thread": {cfg: Config{ReceiveThread: true}, loops: 400},
		"receive thread and loss": {below: lwip.Config{Loss: 0.002, Seed: 5}, cfg: Config{ReceiveThread: true},
			loops: 100},
		"receive thread, late": {below: lwip.Config{Delay: 2 * time.Millisecond}, cfg: Config{ReceiveThread: true},
			loops: 200},
		"loss": {below: lwip.Config{Loss: 0.002, Seed: 5}, loops: 100},
		"all":  {below: lwip.Config{Loss: 0.001, Duplicate: 0.02, Reorder: 0.02, Seed: 6}, loops: 100},
	} {
		t.Run(name, func(t *testing.T) {
			a, b := byReference(t, c.below, c.cfg, rdma.QPConfig{})
			r := rand.New(rand.NewPCG(7, 8))
			const depth = 8
			type request struct {
				p    private
				n    int
				op   rdma.Opcode
				want []byte
			}
			var open []request
			place := func(id int) int { return (id % depth) * (128 << 10) }
			for id, done := 0, 0; done < c.loops; {
				for ; id < c.loops && len(open) < depth; id++ {
					q := request{n: 1 + r.IntN(1<<uint(1+r.IntN(16))), op: []rdma.Opcode{rdma.OpWrite, rdma.OpSend,
						rdma.OpRead}[r.IntN(3)]}
					q.p = a.private(q.n)
					wr := rdma.SendWR{ID: uint64(id), Op: q.op, NumSGE: 1, SGE: q.p.sge(q.n)}
					switch q.op {
					case rdma.OpRead:
						b.fill(uint64(id), place(id), q.n)
						copy(a.bytes(0, q.n), b.bytes(place(id), q.n))
					case rdma.OpSend:
						b.postRecv(uint64(id), b.sge(place(id), q.n))
						fallthrough
					default:
						a.fill(uint64(id), 0, q.n)
						copy(q.p.buf.Bytes(), a.bytes(0, q.n))
					}
					if q.op != rdma.OpSend {
						wr.RKey, wr.RemoteAddr = b.mr.RKey(), b.mr.Addr()+uint64(place(id))
					}
					q.want = append([]byte(nil), a.bytes(0, q.n)...)
					open = append(open, q)
					a.post(wr)
				}
				q := open[0]
				open = open[1:]
				a.want(b, q.op.Completes(), uint64(done), rdma.StatusSuccess)
				got := b.bytes(place(done), q.n)
				if q.op == rdma.OpRead {
					got = q.p.buf.Bytes()[:q.n]
					equal(t, fmt.Sprintf("read %d", done), got, q.want)
				}
				if done%2 == 0 {
					b := q.p.buf.Bytes()
					for i := range b {
						b[i] = 0xee
					}
				}
				q.p.gone(t)
				if q.op == rdma.OpSend {
					b.want(a, rdma.WCRecv, uint64(done), rdma.StatusSuccess)
				}
				if q.op == rdma.OpWrite { // the peer's TCP has it, not yet its memory
					for stop := time.Now().Add(testTimeout); string(got) != string(q.want) && time.Now().Before(stop); {
						b.qp.(*qp).poll()
					}
				}
				if q.op != rdma.OpRead {
					equal(t, fmt.Sprintf("%s %d", q.op, done), got, q.want)
				}
				done++
			}
		})
	}
}

// On a link that loses, nothing is sent again from memory whose request is complete.
func TestByReferenceNothingIsReadAgainBehindACompletion(t *testing.T) {
	const size = 5000
	for name, cfg := range map[string]Config{"polled": {}, "receive thread": {ReceiveThread: true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // it mostly waits for lwIP's timer
			a, b := byReference(t, lwip.Config{Loss: 0.05, Seed: 21, Delay: time.Millisecond}, cfg, rdma.QPConfig{})
			p := a.private(size)
			defer p.gone(t)
			for id := range uint64(6) {
				a.fill(id, 0, size)
				copy(p.buf.Bytes(), a.bytes(0, size))
				a.post(rdma.SendWR{ID: id, Op: rdma.OpWrite, NumSGE: 1, SGE: p.sge(size), RKey: b.mr.RKey(),
					RemoteAddr: b.mr.Addr()})
				a.want(b, rdma.WCWrite, id, rdma.StatusSuccess)
				clear(p.buf.Bytes())
				eventually(t, fmt.Sprintf("write %d as it was posted", id), func() bool {
					b.qp.(*qp).poll()
					return string(b.bytes(0, size)) == string(a.bytes(0, size))
				})
			}
			if n := a.dev.stack.(*lwip.Stack).Counts(); n.Lost == 0 || n.TxReferenced == 0 {
				t.Fatalf("%+v: nothing was lost, or referenced, so that nothing is shown", n)
			}
		})
	}
}

// Whatever completes requests early gives their memory back, while the stack below still sends.
func TestByReferenceMemoryIsTheUsersBehindTheEnd(t *testing.T) {
	const size = 5000 // the stack takes it at once, as the network's window begins with four segments
	flushed := func(t *testing.T, a *end, n int) {
		t.Helper()
		for range n {
			a.next(nil)
		}
	}
	for name, c := range map[string]struct {
		end    func(t *testing.T, a *end)
		within time.Duration // lwIP sends again after 3 s at first, a stream lingers for 2 and its link for 1
		whole  bool          // the stream goes on
	}{
		"queue pair closed": {func(t *testing.T, a *end) { must(t, a.qp.Close()) }, 4 * time.Second, false},
		"failed":            {func(t *testing.T, a *end) { must(t, a.qp.Fail()); flushed(t, a, 1) }, 4 * time.Second, false},
		"killed":            {func(t *testing.T, a *end) { a.dev.Kill(); flushed(t, a, 1) }, 4 * time.Second, false},
		"a fault of its own": {func(t *testing.T, a *end) {
			a.post(rdma.SendWR{ID: 99, Op: rdma.OpWrite, NumSGE: 1, SGE: [4]rdma.SGE{{Addr: 1, Len: 8, LKey: 1}}})
			flushed(t, a, 2)
		}, 4 * time.Second, false},
		"registration closed": {func(*testing.T, *end) {}, testTimeout, true},
	} {
		end := func(t *testing.T, cfg Config) {
			t.Parallel() // it mostly waits for lwIP's timer
			a, b := byReference(t, lwip.Config{Loss: 0.1, Seed: 21, Delay: 50 * time.Millisecond}, cfg, rdma.QPConfig{})
			p := a.private(size)
			a.fill(0, 0, size)
			copy(p.buf.Bytes(), a.bytes(0, size))
			a.post(rdma.SendWR{ID: 0, Op: rdma.OpWrite, NumSGE: 1, SGE: p.sge(size), RKey: b.mr.RKey(),
				RemoteAddr: b.mr.Addr()})
			q := a.qp.(*qp)
			if locked(q, func() bool { return q.tx.sent < size || q.acknowledged(q.tx.sent) }) {
				t.Fatal("nothing is both taken and unacknowledged, so that nothing is shown")
			}
			c.end(t, a)
			p.gone(t)
			arrived := func() bool { return string(b.bytes(0, size)) == string(a.bytes(0, size)) }
			for stop := time.Now().Add(c.within); !arrived() && time.Now().Before(stop); {
				b.qp.(*qp).poll()
				time.Sleep(50 * time.Microsecond)
			}
			if c.whole {
				equal(t, "what was taken", b.bytes(0, size), a.bytes(0, size))
			}
			for i, got := range b.bytes(0, size) { // of a stream that ended, what came is right
				if want := a.bytes(0, size)[i]; got != want && got != 0 {
					t.Fatalf("byte %d = %#x, want %#x or nothing", i, got, want)
				}
			}
		}
		t.Run(name, func(t *testing.T) { end(t, Config{}) })
		t.Run(name+", receive thread", func(t *testing.T) { end(t, Config{ReceiveThread: true}) })
	}
}

// The owner of a read's source writes there while responses are lost, and TCP takes what was sent first.
func TestByReferenceMemoryThatIsReadMayChange(t *testing.T) {
	a, b := byReference(t, lwip.Config{Loss: 0.03, Seed: 4}, Config{NoCRC: true}, rdma.QPConfig{})
	for id := range uint64(20) {
		a.post(a.remote(rdma.OpRead, id, 0, 16<<10, b))
		for stop := time.Now().Add(testTimeout); ; {
			n := need(a.cq.Poll(a.wcs[:1]))(t)
			if n == 1 && (a.wcs[0].ID != id || a.wcs[0].Status != rdma.StatusSuccess) {
				t.Fatalf("%+v", a.wcs[0])
			}
			if n == 1 {
				break
			}
			if time.Now().After(stop) {
				t.Fatalf("read %d does not end", id)
			}
			b.qp.(*qp).poll()
			for i, at := 0, b.bytes(0, 16<<10); i < len(at); i += 64 {
				at[i]++
			}
		}
	}
}

// TestByReferenceWaitsForThePeersStack: the device says so by its name, whatever it was told.
func TestByReferenceWaitsForThePeersStack(t *testing.T) {
	a, _ := byReference(t, lwip.Config{}, Config{}, rdma.QPConfig{})
	if got, want := a.dev.Name(), "iwarp(crc,done=acked,stack=raw,link=shm,copies=zero)"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
