package bench

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/transports"
)

// fault wraps a transport and damages what its sessions do.
type fault struct {
	transports.Transport
	post func(s transports.Session, ops []transports.Op) (int, error)
	poll func(s transports.Session, dst []transports.Done) (int, error)
}

type faultSession struct {
	transports.Session
	f *fault
}

// Caps leave volleys out: they would pass the damage by.
func (f *fault) Caps() transports.Caps {
	c := f.Transport.Caps()
	c.Volleys = false
	return c
}

func (f *fault) Dial(ctx context.Context, addr string, hello []byte, cfg transports.Config) (transports.Session, error) {
	s, err := f.Transport.Dial(ctx, addr, hello, cfg)
	if err != nil {
		return nil, err
	}
	return faultSession{s, f}, nil
}

func (s faultSession) Post(ops []transports.Op) (int, error) {
	if s.f.post != nil {
		return s.f.post(s.Session, ops)
	}
	return s.Session.Post(ops)
}

func (s faultSession) Poll(dst []transports.Done) (int, error) {
	if s.f.poll != nil {
		return s.f.poll(s.Session, dst)
	}
	return s.Session.Poll(dst)
}

// withFault wraps the client's side of mem, where every Post is over when it
// returns.
func withFault(f *fault) ends {
	return func(t testing.TB) (transports.Transport, transports.Transport) {
		client, server := memEnds(t)
		f.Transport = client
		return f, server
	}
}

// flipAfter damages byte at of every data operation from number n on: of the
// source while it is sent, or of the sink when a read or atomic is done.
func flipAfter(n int64, at uint64) *fault {
	f := &fault{}
	var posted atomic.Int64
	var sink atomic.Uint64
	f.post = func(s transports.Session, ops []transports.Op) (int, error) {
		for i := range ops {
			op := &ops[i]
			if op.Kind == transports.KindRecv || op.Len == 0 {
				if k, err := s.Post(ops[i : i+1]); k == 0 {
					return i, err
				}
				continue
			}
			bad := posted.Add(1) > n
			where := op.Local + at
			if bad && !oneSided(op.Kind) {
				s.Local()[where] ^= 0x10
			}
			k, err := s.Post(ops[i : i+1])
			if bad && !oneSided(op.Kind) {
				s.Local()[where] ^= 0x10
			}
			if k == 0 {
				return i, err
			}
			sink.Store(where)
		}
		return len(ops), nil
	}
	f.poll = func(s transports.Session, dst []transports.Done) (int, error) {
		k, err := s.Poll(dst)
		for _, d := range dst[:k] {
			if oneSided(d.Kind) && posted.Load() > n {
				s.Local()[sink.Load()] ^= 0x10
			}
		}
		return k, err
	}
	return f
}

// A single changed bit ends the run with exit code 4 and the byte's place,
// whichever way it travelled.
func TestOneChangedBitIsFound(t *testing.T) {
	for _, w := range []string{WorkloadLatency, WorkloadThroughput} {
		for k := transports.KindSend; k < transports.KindCall; k++ {
			t.Run(w+"/"+k.String(), func(t *testing.T) {
				size, at := 200, 137
				if isAtomic(k) {
					size, at = 8, 0
				}
				plan := quickPlan(Point{Workload: w, Op: k.String(), Size: size})
				plan.WarmupIterations = 5
				results, err := runPoints(t, withFault(flipAfter(150, uint64(at))), plan)
				var bad *CorruptionError
				if reports.Code(err) != reports.ExitCorruption || !errors.As(err, &bad) {
					t.Fatalf("error %v (exit %d), want a corruption and exit 4", err, reports.Code(err))
				}
				if bad.Offset != at || bad.Want^bad.Got != 0x10 {
					t.Errorf("%v: want byte %d with bit 4 changed", bad, at)
				}
				if len(results) != 1 || results[0].Verified || results[0].Errors != 1 {
					t.Errorf("result %+v, want one with an error and unverified", results)
				}
			})
		}
	}
}

// With --no-verify nothing is compared, and the result says so.
func TestNoVerifyComparesNothing(t *testing.T) {
	plan := quickPlan(Point{Workload: WorkloadLatency, Op: "send", Size: 200}, Point{Workload: WorkloadThroughput, Op: "write", Size: 200})
	plan.Verify = false
	results, err := runPoints(t, withFault(flipAfter(0, 1)), plan)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range results {
		if r.Verified {
			t.Errorf("%s: verified, want not", r.Workload)
		}
	}
}

// Data in the wrong place, and data that never came, are corruptions too.
func TestMisplacedAndLostDataIsFound(t *testing.T) {
	redirect := func(change func(op *transports.Op)) *fault {
		f := &fault{}
		f.post = func(s transports.Session, ops []transports.Op) (int, error) {
			changed := append([]transports.Op(nil), ops...)
			for i := range changed {
				if changed[i].Kind == transports.KindWrite {
					change(&changed[i])
				}
			}
			return s.Post(changed)
		}
		return f
	}
	for name, f := range map[string]*fault{
		"wrong source":             redirect(func(op *transports.Op) { op.Local = 0 }),
		"one byte off":             redirect(func(op *transports.Op) { op.Remote++ }),
		"length cut":               redirect(func(op *transports.Op) { op.Len-- }),
		"never written":            redirect(func(op *transports.Op) { op.Len = 0 }),
		"written behind the slots": redirect(func(op *transports.Op) { op.Len++ }),
	} {
		t.Run(name, func(t *testing.T) {
			_, err := runPoints(t, withFault(f), quickPlan(Point{Workload: WorkloadThroughput, Op: "write", Size: 100}))
			if reports.Code(err) != reports.ExitCorruption {
				t.Errorf("error %v, want a corruption", err)
			}
		})
	}
}

// A write that is lost late leaves the same bytes of the write before it: only
// the pass with a fresh pattern can tell.
func TestLateLossIsFoundByTheFreshPattern(t *testing.T) {
	var posted int64
	f := &fault{}
	f.post = func(s transports.Session, ops []transports.Op) (int, error) {
		changed := append([]transports.Op(nil), ops...)
		for i := range changed {
			if changed[i].Kind == transports.KindWrite {
				if posted++; posted > 200 {
					changed[i].Len = 0
				}
			}
		}
		return s.Post(changed)
	}
	results, err := runPoints(t, withFault(f), quickPlan(Point{Workload: WorkloadThroughput, Op: "write", Size: 100}))
	if reports.Code(err) != reports.ExitCorruption || !strings.Contains(fmt.Sprint(err), "window slot") {
		t.Errorf("error %v, want a corruption in a window slot", err)
	}
	if len(results) == 1 && results[0].Verified {
		t.Error("the result claims to be verified")
	}
}

// A transport that loses messages costs the timeout, not a hang.
func TestLostMessagesEndInTime(t *testing.T) {
	for _, pt := range []Point{{Workload: WorkloadLatency, Op: "send", Size: 64}, {Workload: WorkloadLatency, Op: "write", Size: 64}, {Workload: WorkloadThroughput, Op: "send", Size: 64}} {
		t.Run(pt.String(), func(t *testing.T) {
			var posted int64
			f := &fault{}
			f.post = func(s transports.Session, ops []transports.Op) (int, error) {
				for i := range ops {
					if ops[i].Kind != transports.KindRecv {
						if posted++; posted > 100 {
							continue // taken, and gone
						}
					}
					if k, err := s.Post(ops[i : i+1]); k == 0 {
						return i, err
					}
				}
				return len(ops), nil
			}
			plan := quickPlan(pt)
			plan.Timeout = time.Second // a busy machine stands still for longer than 200 ms
			begun := time.Now()
			results, err := runPoints(t, withFault(f), plan)
			if reports.Code(err) != reports.ExitPeer || !errors.Is(err, errStalled) {
				t.Errorf("error %v (exit %d), want no progress and exit 5", err, reports.Code(err))
			}
			if d := time.Since(begun); d > 10*time.Second {
				t.Errorf("took %v", d)
			}
			if pt.Workload == WorkloadLatency && (len(results) != 1 || results[0].Operations != 100) {
				t.Errorf("result %+v, want the 100 samples before the loss", results)
			}
		})
	}
}

// A session that breaks is an error with the completion's own words.
func TestFailedCompletionIsTold(t *testing.T) {
	f := &fault{}
	f.post = func(s transports.Session, ops []transports.Op) (int, error) {
		changed := append([]transports.Op(nil), ops...)
		for i := range changed {
			if changed[i].Kind == transports.KindWrite {
				changed[i].Local = uint64(len(s.Local())) // outside the window
			}
		}
		return s.Post(changed)
	}
	_, err := runPoints(t, withFault(f), quickPlan(Point{Workload: WorkloadThroughput, Op: "write", Size: 64}))
	if err == nil || !strings.Contains(err.Error(), "qp 0") || !strings.Contains(err.Error(), "write") {
		t.Errorf("error %v, want one that names the QP and the operation", err)
	}
}

// Credits that cannot be are refused: believing them would overrun the peer's
// receives, or wait for ever.
func TestImpossibleCreditsAreRefused(t *testing.T) {
	for name, value := range map[string]uint64{"too many": 1 << 40, "no progress": 0} {
		t.Run(name, func(t *testing.T) {
			f := &fault{}
			f.poll = func(s transports.Session, dst []transports.Done) (int, error) {
				k, err := s.Poll(dst)
				for _, d := range dst[:k] {
					if d.Kind == transports.KindRecv {
						at := len(s.Local()) - (ctlSlots-int(d.Slot))*ctlSize
						binary.LittleEndian.PutUint64(s.Local()[at:], value)
					}
				}
				return k, err
			}
			_, err := runPoints(t, withFault(f), quickPlan(Point{Workload: WorkloadThroughput, Op: "send", Size: 64}))
			if reports.Code(err) != reports.ExitPeer || !strings.Contains(err.Error(), "credit") {
				t.Errorf("error %v, want one about credits and exit 5", err)
			}
		})
	}
}
