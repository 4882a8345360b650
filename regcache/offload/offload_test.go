package offload

import (
	"fmt"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdmaperf/rdmaperf/internal/expect"
	"github.com/rdmaperf/rdmaperf/internal/leaktest"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

func TestWordsAreReadAsTheyAreWritten(t *testing.T) {
	for _, w := range []string{"none", "hop", "16µs", "hop+1.5ms"} {
		if c, err := Parse(w); err != nil || c.String() != w {
			t.Errorf("%q reads as %q, %v", w, c, err)
		}
	}
	for _, w := range []string{"", "jump", "0s", "-1us", "hop+", "16"} {
		expect.Is(t, fmt.Sprintf("%q", w), expect.Err(Parse(w)), rdma.ErrInvalid)
	}
}

// below notes which thread calls it, and how often.
type below struct {
	rdma.MR
	threads map[int]int
	err     error
}

func (b *below) RegMR(rdma.PD, rdma.Buffer, rdma.Access) (rdma.MR, error) {
	b.threads[unix.Gettid()]++
	return b, b.err
}

func (b *below) Close() error {
	b.threads[unix.Gettid()]++
	return b.err
}

func TestBothCallsTakeTheDetour(t *testing.T) {
	for _, w := range []string{"none", "hop", "200µs", "hop+200µs"} {
		cfg := expect.Get(Parse(w))(t)
		b := &below{threads: map[int]int{}}
		r := Wrap(b, cfg)
		for range 3 {
			start := time.Now()
			mr := expect.Get(r.RegMR(0, rdma.Buffer{}, 0))(t)
			expect.OK(t, mr.Close())
			if took := time.Since(start); took < 2*cfg.Time {
				t.Errorf("%s: two calls in %v", w, took)
			}
		}
		calls := 0
		for _, n := range b.threads {
			calls += n
		}
		if calls != 6 || cfg.Hop && len(b.threads) != 1 {
			t.Errorf("%s: calls by thread %v", w, b.threads)
		}
		b.err = unix.ENOMEM
		expect.Is(t, fmt.Sprintf("%s: the cause is lost", w), expect.Err(r.RegMR(0, rdma.Buffer{}, 0)), unix.ENOMEM)
		expect.OK(t, r.Close())
	}
}
