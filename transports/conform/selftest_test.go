package conform_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rdmaperf/rdmaperf/transports/conform"
	"github.com/rdmaperf/rdmaperf/transports/memdev"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// mem is a harness over the reference device, with whatever faults cfg arms.
func mem(cfg memdev.Config) *conform.Harness {
	kill := func(b rdma.Device) error { b.(*memdev.Device).Kill(); return nil }
	return &conform.Harness{Name: "mem", Open: memPair(cfg), Kill: kill}
}

func memPair(cfg memdev.Config) conform.Opener {
	return func(context.Context) (rdma.Device, rdma.Device, string, error) {
		cfg.OnDemand = true
		f := memdev.NewFabric(cfg)
		a, errA := f.Open("a")
		b, errB := f.Open("b")
		return a, b, "b:0", errors.Join(errA, errB)
	}
}

// absent are the cases that ask for what the reference device does have, for a
// duty that it does not impose, or for what only tiers have.
var absent = map[string]bool{"rdr/sink-remote-write": true, "rnr/ends-connection": true, "wim/ends-connection": true,
	"cm/passive-waits":  true,
	"pri/limit-refused": true, "pri/covers-unsignaled": true, "pri/fence-holds": true, "acc/kept": true,
	"cm/over-ipv6": true, "dth/link-cut": true, "dth/stopped-peer": true, "dth/loss": true, "dth/loss-atomics": true}

// passes requires a pass of every case that is not about an absence. A may is informational here too.
func passes(t *testing.T, h *conform.Harness, o conform.Options) conform.Report {
	t.Helper()
	rep := conform.Run(t.Context(), h, o)
	if err := h.Close(); err != nil {
		t.Errorf("close harness: %v", err)
	}
	if rep.Err != nil {
		t.Fatal(rep.Err)
	}
	for _, r := range rep.Results {
		switch {
		case r.Verdict == conform.Pass:
		case r.Verdict == conform.Unsupported && (absent[r.ID] || strings.HasPrefix(r.ID, "mw/") && r.Evidence != ""):
		case r.Verdict == conform.Fail && r.Level == conform.May.String():
			t.Logf("%s: want %q, got %s", r.ID, r.Want, r.Got)
		default:
			t.Errorf("%s: %s: want %q, got %s %s", r.ID, r.Verdict, r.Want, r.Got, r.Evidence)
		}
	}
	if rep.Red() || conform.ExitCode(rep) != conform.ExitOK {
		t.Errorf("red %v, exit code %d", rep.Red(), conform.ExitCode(rep))
	}
	return rep
}

// TestReferencePasses: every case passes on the device that was written as the reference, and leaves no object open.
func TestReferencePasses(t *testing.T) {
	t.Parallel()
	rep := passes(t, mem(memdev.Config{Seed: 1}), conform.Options{Strict: true})
	if n := len(rep.Results); n < 75 {
		t.Errorf("only %d cases ran", n)
	}
	if rep.Result("coverage") == nil {
		t.Error("no coverage check in a run of the whole catalogue")
	}
}

func TestSlowAnswersPass(t *testing.T) {
	t.Parallel()
	passes(t, mem(memdev.Config{Seed: 2, ReadDelay: 100 * time.Microsecond}),
		conform.Options{Seed: 2, Only: []string{"ord", "rdr", "atm", "fen", "flu/error*"}})
}

// The first two completions belong to the message that every connection starts with.
const hello = 2

var always = memdev.Trigger{}

// faultRows says which cases have to notice which fault.
var faultRows = []struct {
	fault memdev.Fault
	when  memdev.Trigger
	delay time.Duration // of reads
	cases string        // separated by spaces
}{
	{memdev.FaultDropCompletion, memdev.Trigger{After: hello, Times: 1}, 0,
		"ord/sig-all ord/unsignaled-retire snd/list flu/each-once cqo/short-polls evt/one-event"},
	{memdev.FaultDuplicateCompletion, memdev.Trigger{After: hello, Times: 1}, 0,
		"ord/sig-all ord/unsignaled-retire snd/list flu/each-once flu/closed-qp cqo/threads cqo/short-polls"},
	{memdev.FaultReorderCompletions, always, 0, "ord/mixed-order ord/sig-all ord/write-then-read " +
		"ord/read-data-in-order snd/list flu/each-once flu/error-then-flush qps/post-in-err"},
	{memdev.FaultReorderReceives, always, 0,
		"ord/recv-order qps/recv-in-init snd/both-directions snd/list cm/receives-before-accept"},
	{memdev.FaultSignalAll, always, 0, "ord/unsignaled-silent ord/unsignaled-retire ord/write-then-send"},
	{memdev.FaultFlipByte, always, 0, "snd/sizes snd/gather-scatter rdw/sizes rdw/gather rdw/passive-target " +
		"rdr/sizes rdr/scatter rdr/passive-target inl/overwrite-after-post imm/payload wim/delivers " +
		"ord/write-then-send ord/write-then-read ord/buffer-reuse srq/shared-each-once lrg/send lrg/write lrg/read"},
	{memdev.FaultWrongByteLen, memdev.Trigger{After: 1}, 0, "snd/sizes snd/no-elements snd/longer-receive " +
		"imm/payload imm/value wim/delivers wim/zero-any-key srq/shared-each-once"},
	{memdev.FaultLoseImm, always, 0,
		"imm/value imm/payload imm/zero-length imm/flag-clear wim/delivers wim/zero-any-key"},
	{memdev.FaultSkipBoundsCheck, always, 0, "rdw/beyond-end rdw/before-start rdw/address-wrap rdr/beyond-end " +
		"rdr/before-start rdr/address-wrap rdr/no-partial-answer atm/bad-key"},
	{memdev.FaultSkipAccessCheck, always, 0, "acc/write-rights acc/read-rights acc/atomic-rights acc/qp-rights " +
		"acc/other-domain rdr/no-remote-read atm/no-remote-atomic inv/ordinary-safe evt/access-event srq/other-domain"},
	{memdev.FaultPartialWrite, always, 0, "rdw/beyond-end"},
	{memdev.FaultAcceptOldKey, always, 0, "acc/rkey-after-dereg acc/dereg-while-writing inv/send-inv inv/local-inv"},
	{memdev.FaultLoseAdd, always, 0, "atm/fetch-add atm/concurrent atm/share-ord acc/atomic-rights"},
	{memdev.FaultNoFlush, always, 0, "flu/each-once flu/after-error flu/error-then-flush flu/disconnect " +
		"flu/unsignaled qps/post-in-err qps/close-outstanding qps/fail-anywhere"},
	{memdev.FaultLateFlush, always, 0, "flu/after-error flu/disconnect flu/unsignaled qps/post-in-err"},
	{memdev.FaultStayUp, always, 0,
		"snd/short-receive rdw/beyond-end rdr/no-remote-read flu/after-error acc/wrong-keys rnr/retry-exhausted"},
	{memdev.FaultLoseEvent, always, 0,
		"evt/one-event evt/one-shot evt/own-completion evt/solicited evt/stronger-wins inv/solicited"},
	{memdev.FaultLoseAsync, always, 0,
		"evt/access-event evt/disconnect-event srq/limit-event srq/last-wqe-event qps/drain-resume cqo/overrun"},
	{memdev.FaultIgnoreFence, always, time.Millisecond, "fen/read-then-send fen/read-then-write fen/atomic-then-write"},
	{memdev.FaultExceedORD, always, time.Millisecond, "ord/reads-beyond-ord atm/share-ord"},
	{memdev.FaultDie, memdev.Trigger{After: 5}, 0,
		"snd/queue-wrap ord/mixed-order ord/recv-order dth/neighbour-unharmed"},
}

type proof struct {
	name  string
	cases []string
	open  func() *conform.Harness
}

// turnRed runs every case on a harness of its own and requires a failure with
// what was wanted and what was seen. It returns what the harnesses said at the end.
func turnRed(t *testing.T, proofs []proof) map[string]error {
	t.Helper()
	// Most of the time is spent waiting for what never comes, so all run side by side.
	var wg sync.WaitGroup
	places := make(chan struct{}, 24)
	var mu sync.Mutex
	closed := map[string]error{}
	results := map[string]conform.Report{}
	for _, p := range proofs {
		for _, id := range p.cases {
			wg.Go(func() {
				places <- struct{}{}
				defer func() { <-places }()
				var rep conform.Report
				var err error
				// Some cases see a fault by what never comes. A busy machine may be longer about
				// what does come, and then the case deserves more time.
				for limit := 600 * time.Millisecond; limit < 30*time.Second; limit *= 8 {
					h := p.open()
					rep = conform.Run(t.Context(), h, conform.Options{Only: []string{id}, CaseTimeout: limit})
					if err = h.Close(); rep.Result(id) != nil && rep.Result(id).Verdict == conform.Fail {
						break
					}
				}
				mu.Lock()
				defer mu.Unlock()
				results[p.name+" "+id], closed[p.name+" "+id] = rep, err
			})
		}
	}
	wg.Wait()
	for _, p := range proofs {
		t.Run(p.name, func(t *testing.T) {
			for _, id := range p.cases {
				rep := results[p.name+" "+id]
				r := rep.Result(id)
				if r == nil || r.Verdict != conform.Fail || len(r.Want) == 0 || r.Got == "" {
					t.Errorf("%s does not notice it: %+v %v", id, r, rep.Err)
					continue
				}
				t.Logf("%s: want %q, got %s", id, r.Want, r.Got)
			}
		})
	}
	return closed
}

// TestFaultsTurnRed proves the suite: each way in which the reference device can be broken must be noticed by the cases
// that are named for it, as a broken requirement and not as an error of the suite.
func TestFaultsTurnRed(t *testing.T) {
	t.Parallel()
	var runs []proof
	for _, f := range faultRows {
		runs = append(runs, proof{f.fault.String(), strings.Fields(f.cases), func() *conform.Harness {
			return mem(memdev.Config{Seed: 1, ReadDelay: f.delay,
				Faults: map[memdev.Fault]memdev.Trigger{f.fault: f.when}})
		}})
	}
	for h, err := range turnRed(t, runs) {
		// A failed case is no reason to leave objects open.
		if err != nil {
			t.Errorf("close harness of %s: %v", h, err)
		}
	}
	if n := memdev.NumFaults; n != 21 {
		t.Errorf("the reference device has %d faults, the table knows 21", n)
	}
}

const latePolls = 4

// lateness holds back the send completions of one CQ. A message may have been
// received long before its acknowledgement is back.
type lateness struct {
	mu    sync.Mutex
	polls int
	count int       // of held completions, ever
	held  []rdma.WC // oldest first
	due   []int     // the poll that gives them out
}

func (l *lateness) poll(inner rdma.CQ, dst []rdma.WC) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.polls++
	n := l.release(dst)
	k, err := inner.Poll(dst[n:])
	fresh := append([]rdma.WC(nil), dst[n:n+k]...)
	for i := range fresh {
		switch wc := &fresh[i]; {
		case wc.Status != rdma.StatusSuccess:
			// Nothing that succeeded comes behind it.
			for i := range l.due {
				l.due[i] = l.polls
			}
			l.held, l.due = append(l.held, *wc), append(l.due, l.polls)
		case wc.Opcode.IsRecv():
			dst[n] = *wc
			n++
		default:
			l.count++
			l.held, l.due = append(l.held, *wc), append(l.due, l.polls+l.count%(latePolls+1))
		}
	}
	n += l.release(dst[n:])
	if n > 0 {
		err = nil
	}
	return n, err
}

func (l *lateness) release(dst []rdma.WC) (n int) {
	for ; n < len(dst) && len(l.held) > 0 && l.due[0] <= l.polls; n++ {
		dst[n] = l.held[0]
		l.held, l.due = l.held[1:], l.due[1:]
	}
	return n
}

func TestLateAcknowledgementsPass(t *testing.T) {
	t.Parallel()
	var queues sync.Map
	h := bentMem(func(b *bend) {
		b.poll = func(inner rdma.CQ, dst []rdma.WC) (int, error) {
			l, _ := queues.LoadOrStore(inner, new(lateness))
			return l.(*lateness).poll(inner, dst)
		}
	}, memdev.Config{Seed: 3})
	passes(t, h, conform.Options{Seed: 3,
		Only: []string{"snd", "srq", "rdw", "rdr", "imm", "wim", "inl", "ord", "fen", "inv", "atm", "lrg"},
		Skip: []string{"inv/solicited"}}) // an event says that a completion can be polled at once
}
