package bpev

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rdmaperf/rdmaperf/internal/leaktest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

const (
	never    = time.Hour
	testTime = 30 * time.Second
)

// fake is a connection whose readiness the test decides.
type fake struct {
	ready atomic.Uint32
	polls atomic.Uint64
}

func (f *fake) Poll() Ready {
	f.polls.Add(1)
	return Ready(f.ready.Load())
}

func (f *fake) set(r Ready) { f.ready.Store(uint32(r)) }

// source is a completion channel.
type source struct {
	of     *fake
	mu     sync.Mutex
	armed  bool
	raised chan struct{}
	fail   error
}

func newSource(of *fake) *source { return &source{of: of, raised: make(chan struct{}, 1)} }

func (s *source) Arm() (Ready, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.armed = true
	return s.of.Poll(), s.fail
}

func (s *source) Wait(ctx context.Context) error {
	select {
	case <-s.raised:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// raise is what a device does when something completes: one event if armed.
func (s *source) raise() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.armed {
		s.armed = false
		s.raised <- struct{}{}
	}
}

var errDevice = errors.New("device gone")

func open(t testing.TB, cfg Config) *Set {
	t.Helper()
	s, err := newSet(context.Background(), cfg, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// waiting starts a Wait and gives its result.
func waiting(h *Handle, want Ready, deadline time.Time) <-chan error {
	got := make(chan error, 1)
	go func() { got <- h.Wait(want, deadline) }()
	return got
}

func result(t *testing.T, got <-chan error) error {
	t.Helper()
	select {
	case err := <-got:
		return err
	case <-time.After(testTime):
		buf := make([]byte, 1<<16)
		t.Fatalf("the wait hangs\n%s", buf[:runtime.Stack(buf, true)])
		return nil
	}
}

// served ends the test unless the wait ends well.
func served(t *testing.T, got <-chan error) {
	t.Helper()
	if err := result(t, got); err != nil {
		t.Fatal(err)
	}
}

// rests waits until a count stands still: what is to rest may be late on a machine
// that is busy, but what never does is found out.
func rests(t *testing.T, count func() uint64) {
	t.Helper()
	until(t, "it does not rest", func() bool {
		was := count()
		time.Sleep(30 * time.Millisecond)
		return count() == was
	})
}

// until waits for a condition, and fails the test with what is wrong when it never holds.
func until(t *testing.T, wrong string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(testTime); !holds(); time.Sleep(100 * time.Microsecond) {
		if time.Now().After(end) {
			t.Fatal(wrong)
		}
	}
}

// asleep waits until somebody sleeps on h.
func asleep(t *testing.T, h *Handle, want Ready) {
	t.Helper()
	until(t, "nobody went to sleep", func() bool { return h.Sleeping()&want != 0 })
}
