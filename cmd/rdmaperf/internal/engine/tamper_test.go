package engine_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine/enginetest"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/latency"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/throughput"
	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/softstack/iwarp"
	"github.com/rdmaperf/rdmaperf/transports"
	"github.com/rdmaperf/rdmaperf/transports/direct"
	"github.com/rdmaperf/rdmaperf/transports/tcp"
)

// tamperer is a transport whose sessions go through a proxy, as a switch with bad memory
// changes them: it swaps two 16-bit words of the stream, so that TCP's checksum stays right
// (RFC 1071: it does not depend on the order of words).
type tamperer struct {
	transports.Transport
	t       testing.TB
	at      int64 // octet of the stream
	back    bool  // of what the server sends
	swapped *bool
}

func (p *tamperer) Dial(ctx context.Context, addr string, hello []byte, cfg transports.Config) (transports.Session, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		from, err := l.Accept()
		l.Close()
		if err != nil {
			return
		}
		to, err := net.Dial("tcp", addr)
		if err != nil {
			from.Close()
			return
		}
		end := func() { from.Close(); to.Close() }
		wg.Go(func() { defer end(); p.pump(from, to, !p.back) })
		wg.Go(func() { defer end(); p.pump(to, from, p.back) })
	})
	p.t.Cleanup(func() { l.Close(); wg.Wait() })
	return p.Transport.Dial(ctx, l.Addr().String(), hello, cfg)
}

// pump forwards, and changes what lies at the chosen place.
func (p *tamperer) pump(from io.Reader, to io.Writer, bad bool) {
	buf := make([]byte, 1<<16)
	for seen := int64(0); ; {
		n, err := from.Read(buf)
		if bad && !*p.swapped && seen+int64(n) > p.at+4 {
			for i := max(p.at-seen, 0); i+4 <= int64(n); i++ {
				if b := buf[i:]; b[0] != b[2] || b[1] != b[3] {
					b[0], b[1], b[2], b[3] = b[2], b[3], b[0], b[1]
					*p.swapped = true
					break
				}
			}
		}
		seen += int64(n)
		if _, e := to.Write(buf[:n]); e != nil || err != nil {
			return
		}
	}
}

// With every message compared, a change is found wherever it happens, in every operation, on
// stacks that have no check of their own. A change of a header may end the connection
// instead; nothing passes for verified.
func TestTamperingIsFound(t *testing.T) {
	const size, messages = 6000, 300
	stacks := map[string]func(t testing.TB) transports.Transport{
		"tcp": func(t testing.TB) transports.Transport {
			return enginetest.Owned[transports.Transport](t, tcp.New(tcp.Config{}))
		},
		"iwarp(nocrc)": func(t testing.TB) transports.Transport {
			dev, err := iwarp.Open(iwarp.Config{NoCRC: true})
			if err != nil {
				t.Fatal(err)
			}
			return enginetest.Owned[transports.Transport](t, direct.New(dev))
		},
	}
	for name, open := range stacks {
		for _, workload := range []string{throughput.Name, latency.Name} {
			for _, op := range []string{"send", "write", "write_imm", "read"} {
				found := 0
				for _, part := range []float64{0.02, 0.35, 0.61, 0.93} {
					t.Run(fmt.Sprintf("%s/%s/%s/%v", name, workload, op, part), func(t *testing.T) {
						swapped := false
						through := func(t testing.TB) (transports.Stack, transports.Stack) {
							return &tamperer{Transport: open(t), t: t, at: int64(part * size * messages), back: op == "read", swapped: &swapped}, open(t)
						}
						plan := enginetest.QuickPlan(engine.Point{Workload: workload, Op: op, Size: size})
						plan.Iterations, plan.VerifyAll, plan.Timeout = messages, true, 5*time.Second
						results, err := enginetest.RunPoints(t, through, plan)
						var bad *engine.CorruptionError
						if errors.As(err, &bad) && reports.Code(err) == reports.ExitCorruption {
							found++
						}
						if err == nil || len(results) > 0 && results[0].Verified {
							t.Errorf("swapped %v, error %v, results %+v", swapped, err, results)
						}
					})
				}
				if found < 2 { // most of the stream is payload
					t.Errorf("%s %s %s: %d of 4 were seen as changed data", name, workload, op, found)
				}
			}
		}
	}
}

// Without a change, all of the data is compared with --verify all, and the sample and the
// numbers by default; and the results say so.
func TestVerificationIsCounted(t *testing.T) {
	for name, e := range enginetest.StacksUnderTest {
		for _, op := range []string{"send", "write", "write_imm", "read"} {
			for _, size := range []int{3, 200, 70_000} {
				for _, all := range []bool{false, true} {
					plan := enginetest.QuickPlan(engine.Point{Workload: throughput.Name, Op: op, Size: size}, engine.Point{Workload: latency.Name, Op: op, Size: size})
					plan.VerifyAll = all
					results, err := enginetest.RunPoints(t, e, plan)
					if err != nil {
						t.Errorf("%s %s %d: %v", name, op, size, err)
						continue
					}
					for _, r := range results {
						v := r.Verification
						want := r.Operations
						if v == nil || v.Messages != want || !r.Verified {
							t.Fatalf("%s %s %s %d: %+v of %d", name, r.Workload, op, size, v, want)
						}
						whole := all || r.Workload == latency.Name
						switch {
						case whole && (v.Whole != want || v.Numbers != want || v.Bytes != want*int64(size)):
							t.Errorf("%s %s %s %d: %+v, want all of %d", name, r.Workload, op, size, v, want)
						case !whole && op != "write" && v.Numbers != want, v.Whole < 1 || v.Whole > v.Numbers || v.Numbers > want:
							t.Errorf("%s %s %s %d: %+v of %d", name, r.Workload, op, size, v, want)
						}
					}
				}
			}
		}
	}
}

// A message that is lost, comes twice, or in another's place is found by its number, without
// a sample.
func TestNumbersFindWhatOrderLoses(t *testing.T) {
	for name, change := range map[string]func(ops []transports.Op, n int) []transports.Op{
		"swapped": func(ops []transports.Op, n int) []transports.Op {
			ops[0].Local, ops[1].Local = ops[1].Local, ops[0].Local
			return ops
		},
		"another in its place": func(ops []transports.Op, n int) []transports.Op { ops[0].Local = ops[1].Local; return ops },
	} {
		for _, op := range []string{"send", "write_imm", "read"} {
			f, seen := &enginetest.Fault{}, 0
			f.Post = func(s transports.Session, ops []transports.Op) (int, error) {
				if k := ops[0].Kind; len(ops) > 1 && ops[0].Len == 200 && (k == transports.KindSend || k == transports.KindWriteImm || k == transports.KindRead) {
					if seen++; seen == 3 {
						return s.Post(change(append([]transports.Op(nil), ops...), seen))
					}
				}
				return s.Post(ops)
			}
			plan := enginetest.QuickPlan(engine.Point{Workload: throughput.Name, Op: op, Size: 200})
			plan.Iterations, plan.Moderation = 1000, 1
			if _, err := enginetest.RunPoints(t, enginetest.WithFault(f), plan); reports.Code(err) != reports.ExitCorruption {
				t.Errorf("%s %s: %v, want a corruption", op, name, err)
			}
		}
	}
}
