package engine_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine/enginetest"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/latency"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/throughput"
	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/transports"
)

// A single changed bit ends the run with exit code 4 and the byte's place, whichever way it travelled.
func TestOneChangedBitIsFound(t *testing.T) {
	for _, w := range []string{latency.Name, throughput.Name} {
		for k := transports.KindSend; k < transports.KindCall; k++ {
			t.Run(w+"/"+k.String(), func(t *testing.T) {
				size, at := 200, 137
				if engine.IsAtomic(k) {
					size, at = 8, 0
				}
				plan := enginetest.QuickPlan(engine.Point{Workload: w, Op: k.String(), Size: size})
				plan.WarmupIterations = 5
				results, err := enginetest.RunPoints(t,
					enginetest.WithFault(enginetest.FlipAfter(150, uint64(at))), plan)
				var bad *engine.CorruptionError
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

// With --verify none nothing is compared, and the result says so.
func TestNoVerifyComparesNothing(t *testing.T) {
	plan := enginetest.QuickPlan(engine.Point{Workload: latency.Name, Op: "send", Size: 200},
		engine.Point{Workload: throughput.Name, Op: "write", Size: 200})
	plan.Verify = false
	results, err := enginetest.RunPoints(t, enginetest.WithFault(enginetest.FlipAfter(0, 1)), plan)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range results {
		if r.Verified {
			t.Errorf("%s: verified, want not", r.Workload)
		}
	}
}

// bent changes the n-th write of a client, from 1 on, before it is posted.
func bent(change func(s transports.Session, op *transports.Op, n int)) enginetest.Ends {
	posted := 0
	return enginetest.WithFault(&enginetest.Fault{Post: func(s transports.Session, ops []transports.Op) (int, error) {
		changed := slices.Clone(ops)
		for i := range changed {
			if changed[i].Kind == transports.KindWrite {
				posted++
				change(s, &changed[i], posted)
			}
		}
		return s.Post(changed)
	}})
}

// Data in the wrong place, and data that never came, are corruptions too.
func TestMisplacedAndLostDataIsFound(t *testing.T) {
	for name, change := range map[string]func(op *transports.Op){
		"wrong source":             func(op *transports.Op) { op.Local = 0 },
		"one byte off":             func(op *transports.Op) { op.Remote++ },
		"length cut":               func(op *transports.Op) { op.Len-- },
		"never written":            func(op *transports.Op) { op.Len = 0 },
		"written behind the slots": func(op *transports.Op) { op.Len++ },
	} {
		t.Run(name, func(t *testing.T) {
			_, err := enginetest.RunPoints(t, bent(func(_ transports.Session, op *transports.Op, _ int) { change(op) }),
				enginetest.QuickPlan(engine.Point{Workload: throughput.Name, Op: "write", Size: 100}))
			if reports.Code(err) != reports.ExitCorruption {
				t.Errorf("error %v, want a corruption", err)
			}
		})
	}
}

// A write that is lost late leaves the number of the write before it.
func TestLateLossIsFoundByTheNumber(t *testing.T) {
	results, err := enginetest.RunPoints(t, bent(func(_ transports.Session, op *transports.Op, n int) {
		if n > 200 {
			op.Len = 0
		}
	}), enginetest.QuickPlan(engine.Point{Workload: throughput.Name, Op: "write", Size: 100}))
	if reports.Code(err) != reports.ExitCorruption || !strings.Contains(fmt.Sprint(err), "number of message") {
		t.Errorf("error %v, want a corruption of a number", err)
	}
	if len(results) == 1 && results[0].Verified {
		t.Error("the result claims to be verified")
	}
}

// A transport that loses messages costs the timeout, not a hang.
func TestLostMessagesEndInTime(t *testing.T) {
	for _, pt := range []engine.Point{{Workload: latency.Name, Op: "send", Size: 64},
		{Workload: latency.Name, Op: "write", Size: 64}, {Workload: throughput.Name, Op: "send", Size: 64}} {
		t.Run(pt.String(), func(t *testing.T) {
			t.Parallel() // all wait for the same second, and poll
			var posted int64
			f := &enginetest.Fault{}
			f.Post = func(s transports.Session, ops []transports.Op) (int, error) {
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
			plan := enginetest.QuickPlan(pt)
			plan.Timeout = time.Second // a busy machine pauses for longer than 200 ms
			begun := time.Now()
			results, err := enginetest.RunPoints(t, enginetest.WithFault(f), plan)
			if reports.Code(err) != reports.ExitPeer || !errors.Is(err, engine.ErrStalled) {
				t.Errorf("error %v (exit %d), want no progress and exit 5", err, reports.Code(err))
			}
			if d := time.Since(begun); d > 10*time.Second {
				t.Errorf("took %v", d)
			}
			if pt.Workload == latency.Name && (len(results) != 1 || results[0].Operations != 100) {
				t.Errorf("result %+v, want the 100 samples before the loss", results)
			}
		})
	}
}

// A session that breaks is an error with the completion's own words.
func TestFailedCompletionIsTold(t *testing.T) {
	_, err := enginetest.RunPoints(t, bent(func(s transports.Session, op *transports.Op, _ int) {
		op.Local = uint64(len(s.Local())) // outside the window
	}), enginetest.QuickPlan(engine.Point{Workload: throughput.Name, Op: "write", Size: 64}))
	if err == nil || !strings.Contains(err.Error(), "qp 0") || !strings.Contains(err.Error(), "write") {
		t.Errorf("error %v, want one that names the QP and the operation", err)
	}
}

func sendImmPlan(size int) engine.Plan {
	return enginetest.QuickPlan(engine.Point{Workload: latency.Name, Op: "send_imm", Size: size},
		engine.Point{Workload: throughput.Name, Op: "send_imm", Size: size})
}

// A send with immediate carries bytes where there is room, and over iWARP the immediate alone; each is compared.
func TestSendsWithImmediateAreCompared(t *testing.T) {
	for name, c := range map[string]struct {
		ends  enginetest.Ends
		size  int
		bytes int64 // compared of each, at least
	}{"mem": {enginetest.MemEnds, 200, 8}, "iwarp": {enginetest.IwarpEnds, engine.ImmAloneSize, 4}} {
		results, err := enginetest.RunPoints(t, c.ends, sendImmPlan(c.size))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		for _, r := range results {
			v := r.Verification
			if !r.Verified || v == nil || v.Messages != r.Operations || v.Numbers != r.Operations ||
				v.Bytes < c.bytes*r.Operations {
				t.Errorf("%s %s: verified %v, %+v of %d", name, r.Workload, r.Verified, v, r.Operations)
			}
		}
	}
}

func TestSendsWithImmediateAreRefused(t *testing.T) {
	both := sendImmPlan(8)
	both.Points[1].Bidirectional = true
	for name, c := range map[string]struct {
		ends enginetest.Ends
		plan engine.Plan
		code int
		says string
	}{
		"not declared": {enginetest.TcpEnds, sendImmPlan(8), reports.ExitNotRun, "no operation send_imm"},
		"no room":      {enginetest.IwarpEnds, sendImmPlan(64), reports.ExitNotRun, "immediate alone"},
		"both ways":    {enginetest.MemEnds, both, reports.ExitUsage, "one way"},
	} {
		_, err := enginetest.RunPoints(t, c.ends, c.plan)
		if reports.Code(err) != c.code || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want code %d and %q", name, err, c.code, c.says)
		}
	}
}

// Another immediate, and a message that comes without, are corruptions.
func TestAWrongImmediateIsFound(t *testing.T) {
	for name, c := range map[string]struct {
		ends enginetest.Ends
		size int
		kind transports.Kind
	}{
		"mem/another":   {enginetest.MemEnds, 200, transports.KindSendImm},
		"mem/none":      {enginetest.MemEnds, 200, transports.KindSend},
		"iwarp/another": {enginetest.IwarpEnds, engine.ImmAloneSize, transports.KindSendImm},
	} {
		for i, p := range sendImmPlan(c.size).Points {
			seen := 0
			f := &enginetest.Fault{Post: func(s transports.Session, ops []transports.Op) (int, error) {
				if ops[0].Kind == transports.KindSendImm {
					if seen++; seen == 3 {
						ops = append([]transports.Op(nil), ops...)
						ops[0].Kind = c.kind
						ops[0].Imm ^= 1 << 20
					}
				}
				return s.Post(ops)
			}}
			plan := enginetest.QuickPlan(p)
			plan.Loop = engine.LoopPlain // the fault is in Post
			_, err := enginetest.RunPoints(t, func(t testing.TB) (transports.Stack, transports.Stack) {
				client, server := enginetest.SessionEnds(t, c.ends)
				f.Transport = client
				return f, server
			}, plan)
			if reports.Code(err) != reports.ExitCorruption {
				t.Errorf("%s %d: %v, want a corruption", name, i, err)
			}
		}
	}
}
