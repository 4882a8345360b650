package mesh

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/arms"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/allreduce/steps"
	"github.com/rdmaperf/rdmaperf/internal/leaktest"
	"github.com/rdmaperf/rdmaperf/softstack/iwarp"
	"github.com/rdmaperf/rdmaperf/transports/memdev"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

func ranks(t *testing.T, p int, open func(rank int) (rdma.Device, error), cfg Config,
	f func(ctx context.Context, m *Mesh, dev rdma.Device) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	ms, devs, addrs := make([]*Mesh, p), make([]rdma.Device, p), make([]string, p)
	for r := range p {
		var err error
		devs[r], err = open(r)
		must(t, err)
		c := cfg
		c.Rank, c.Size = r, p
		ms[r], err = Open(devs[r], "127.0.0.1:0", c)
		must(t, err)
		addrs[r] = ms[r].Addr()
	}
	var wg sync.WaitGroup
	errs := make([]error, p)
	for r := range p {
		wg.Go(func() {
			if errs[r] = ms[r].Join(ctx, addrs, 42); errs[r] == nil {
				errs[r] = f(ctx, ms[r], devs[r])
			}
		})
	}
	wg.Wait()
	for r := range p {
		if err := errors.Join(errs[r], ms[r].Close(), devs[r].Close()); err != nil {
			t.Errorf("rank %d: %v", r, err)
		}
	}
}

// providers are two software devices: completions mean that the peer has it, or are local.
func providers(t *testing.T, f func(t *testing.T, open func(rank int) (rdma.Device, error))) {
	t.Run("mem", func(t *testing.T) {
		fab := memdev.NewFabric(memdev.Config{})
		f(t, func(r int) (rdma.Device, error) { return fab.Open(fmt.Sprintf("rank%d", r)) })
	})
	t.Run("iwarp", func(t *testing.T) {
		f(t, func(int) (rdma.Device, error) { return iwarp.Open(iwarp.Config{}) })
	})
}

var short = Config{Eager: 64, Segment: 512, Timeout: 20 * time.Second}

func TestVectorsAreSummed(t *testing.T) {
	providers(t, func(t *testing.T, open func(rank int) (rdma.Device, error)) {
		for _, p := range []int{1, 2, 3, 4} {
			for _, eager := range []int{short.Eager, 16 << 10} {
				cfg := short
				cfg.Eager, cfg.Wait = eager, eager > short.Eager || p > 2
				ranks(t, p, open, cfg, func(ctx context.Context, m *Mesh, dev rdma.Device) error {
					for _, name := range []string{arms.None, arms.Cache, arms.Prereg, arms.Lazy} {
						arm, err := arms.New(name, arms.Settings{Reg: dev, Access: rdma.LocalWrite | rdma.RemoteWrite,
							Pages: rdma.PagesBase, Piece: 16 << 10, Deferred: 64 << 10})
						if err != nil {
							return err
						}
						for _, algorithm := range steps.Algorithms() {
							for _, n := range []int{1, 5, 16, 100, 3000} {
								if err := sum(ctx, m, arm, algorithm, n); err != nil {
									return fmt.Errorf("%s, %s, %d elements: %w", name, algorithm, n, err)
								}
							}
						}
						if err := arm.Close(); err != nil {
							return err
						}
					}
					return nil
				})
			}
		}
	})
}

func sum(ctx context.Context, m *Mesh, arm arms.Arm, algorithm string, n int) error {
	in, err := arm.Take(n * elem)
	if err != nil {
		return err
	}
	out, err := arm.Take(n * elem)
	if err != nil {
		return err
	}
	if err := m.Reserve(n * elem); err != nil {
		return err
	}
	for i, v := 0, Floats(in.Bytes()); i < len(v); i++ {
		v[i] = float32(m.cfg.Rank + i)
	}
	v := Floats(out.Bytes())
	for i := range v {
		v[i] = 1e9 // that nobody reads
	}
	if err := m.Barrier(ctx); err != nil {
		return err
	}
	list, err := steps.Of(algorithm, m.cfg.Rank, m.cfg.Size, n)
	if err != nil {
		return err
	}
	if err := m.Reduce(ctx, list, in, out, arm); err != nil {
		return err
	}
	p := m.cfg.Size
	for i := range v {
		if want := float32(p*(p-1)/2 + p*i); v[i] != want {
			return fmt.Errorf("element %d is %v, want %v", i, v[i], want)
		}
	}
	return errors.Join(arm.Give(in), arm.Give(out))
}

// A rank that says nothing ends the wait of the others in time, and the message says on whom.
func TestASilentRankIsNamed(t *testing.T) {
	providers(t, func(t *testing.T, open func(rank int) (rdma.Device, error)) {
		cfg := short
		cfg.Timeout = time.Second // ranks that connect have no more, and share a busy machine
		done := make(chan struct{})
		ranks(t, 2, open, cfg, func(ctx context.Context, m *Mesh, _ rdma.Device) error {
			if m.cfg.Rank == 1 {
				<-done
				return nil
			}
			defer close(done)
			err := m.Barrier(ctx)
			if err == nil || err.Error() != "receive from rank 1: nothing for 1s" {
				return fmt.Errorf("barrier beside a silent rank: %v", err)
			}
			return nil
		})
	})
}

type polls struct {
	rdma.CQ
	n int
}

func (p *polls) Poll(wcs []rdma.WC) (int, error) {
	p.n++
	return p.CQ.Poll(wcs)
}

// A rank that may sleep polls as often as it offers its CPU, and once more behind the request of an event.
func TestAWaitingRankDoesNotSpin(t *testing.T) {
	// of a round: two messages or so, each with two more looks before its event and one behind
	const rounds, most = 20, 8 + 2*offers
	providers(t, func(t *testing.T, open func(rank int) (rdma.Device, error)) {
		cfg := short
		cfg.Wait = true
		ranks(t, 2, open, cfg, func(ctx context.Context, m *Mesh, _ rdma.Device) error {
			counted := &polls{CQ: m.cq}
			m.cq = counted
			for range rounds {
				if m.cfg.Rank == 1 {
					time.Sleep(2 * time.Millisecond) // the other has nothing to do meanwhile
				}
				if err := m.Barrier(ctx); err != nil {
					return err
				}
			}
			if counted.n > rounds*most {
				return fmt.Errorf("%d polls in %d barriers, want at most %d", counted.n, rounds, rounds*most)
			}
			return nil
		})
	})
}

func TestSizesAndPlacesAreChecked(t *testing.T) {
	dev, err := memdev.NewFabric(memdev.Config{}).Open("a")
	must(t, err)
	defer dev.Close()
	for _, c := range []Config{{}, {Size: MaxRanks + 1, Segment: 4}, {Size: 2, Rank: 2, Segment: 4},
		{Size: 2, Eager: -1, Segment: 4}, {Size: 2}} {
		if _, err := Open(dev, "a:0", c); !errors.Is(err, rdma.ErrInvalid) {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

func FuzzMessage(f *testing.F) {
	for kind := range uint8(numKinds + 1) {
		b := make([]byte, headLen+4)
		(&head{kind: kind, number: 7, length: 4, addr: 1, key: 2}).encode(b)
		f.Add(b)
		f.Add(b[:headLen])
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		h, err := parse(b)
		if err != nil {
			if !errors.Is(err, rdma.ErrProtocol) {
				t.Fatal(err)
			}
			return
		}
		again := make([]byte, headLen)
		h.encode(again)
		if h.kind == 0 || h.kind >= numKinds || binary.BigEndian.Uint32(again[4:]) != binary.BigEndian.Uint32(b[4:]) ||
			(h.kind == kindEager) != (h.length == uint64(len(b)-headLen) && h.kind == kindEager) {
			t.Fatalf("%x reads as %+v", b, h)
		}
	})
}

// A rank whose queue pair a fault of its peer ended names the rank and the fault, not only a flush.
func TestAFlushedRankSaysWhy(t *testing.T) {
	providers(t, func(t *testing.T, open func(rank int) (rdma.Device, error)) {
		joined := make(chan struct{})
		ranks(t, 2, open, short, func(ctx context.Context, m *Mesh, _ rdma.Device) error {
			p := m.peers[1-m.cfg.Rank]
			if m.cfg.Rank == 0 {
				close(joined)
			} else {
				select {
				case <-joined:
				case <-ctx.Done():
					return ctx.Err()
				}
				wr := rdma.SendWR{ID: uint64(p.rank)<<32 | whatQuiet<<24, Op: rdma.OpWrite, RemoteAddr: 4096,
					RKey: 0xdead00, NumSGE: 1}
				wr.SGE[0] = rdma.SGE{Addr: m.buf.Addr(), Len: 64, LKey: m.mr.LKey()}
				if _, err := p.qp.PostSend([]rdma.SendWR{wr}); err != nil {
					return err
				}
			}
			err := m.Barrier(ctx)
			if err == nil { // the other's message of it had come before the fault did
				err = m.Barrier(ctx)
			}
			if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("rank %d: ", p.rank)) ||
				!strings.Contains(err.Error(), "access") {
				return fmt.Errorf("barrier behind a write to nobody's memory: %v, want the rank and an access error", err)
			}
			var status *rdma.StatusError
			if !errors.As(err, &status) {
				return fmt.Errorf("no status in %w", err)
			}
			t.Logf("rank %d: %v", m.cfg.Rank, err)
			return nil
		})
	})
}

// Sums hold at every length and alignment, also in place, and nothing beside them is touched.
func TestElementsAreAdded(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for n := range 300 {
		off := r.IntN(16)
		a, b := make([]float32, off+n+8), make([]float32, off+n)
		for i := range b {
			a[i], b[i] = r.Float32(), r.Float32()
		}
		dst := make([]float32, off+n+8)
		add(dst[off:off+n], a[off:off+n], b[off:])
		was := slices.Clone(a)
		add(a[off:off+n], a[off:off+n], b[off:])
		for i := range a {
			want, kept := float32(0), was[i]
			if i >= off && i < off+n {
				want, kept = was[i]+b[i], was[i]+b[i]
			}
			if dst[i] != want || a[i] != kept {
				t.Fatalf("%d elements from %d: element %d is %v and %v, want %v and %v", n, off, i, dst[i], a[i],
					want, kept)
			}
		}
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
