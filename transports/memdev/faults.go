package memdev

import (
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// Fault is one way of breaking the rules on purpose; each comment says which promise it breaks.
type Fault uint8

const (
	// FaultDropCompletion swallows a completion. Breaks "every signalled or failed request completes".
	FaultDropCompletion Fault = iota
	// FaultDuplicateCompletion delivers a completion twice. Breaks "exactly once".
	FaultDuplicateCompletion
	// FaultReorderCompletions exchanges a completion with the one before it of the
	// same queue, if that has not been polled. Breaks the order of completions.
	FaultReorderCompletions
	// FaultReorderReceives delivers into the second oldest receive. Breaks the order of receives.
	FaultReorderReceives
	// FaultSignalAll completes unsignalled requests. Breaks "unsignaled success has no completion".
	FaultSignalAll
	// FaultFlipByte changes one byte of a message after its placement. Breaks the integrity of data.
	FaultFlipByte
	// FaultWrongByteLen reports a receive one byte longer or shorter. Breaks WC.ByteLen.
	FaultWrongByteLen
	// FaultLoseImm delivers immediate data without value and flag. Breaks WithImm.
	FaultLoseImm
	// FaultSkipBoundsCheck lets remote access leave its registration. Bytes outside are touched only where a range lies
	// in one live rdma.Buffer; other bytes are dropped. Breaks the bounds of registrations.
	FaultSkipBoundsCheck
	// FaultSkipAccessCheck ignores domains and rights, of registrations, QPs and invalidation. Breaks protection.
	FaultSkipAccessCheck
	// FaultPartialWrite places the part of a refused write that lies inside the
	// registration. Breaks "a refusal places nothing".
	FaultPartialWrite
	// FaultAcceptOldKey lets remote access use keys revoked while the fault was armed, as far as the memory is still
	// mapped (freeing it while peers use the key is not survived). Breaks revocation.
	FaultAcceptOldKey
	// FaultLoseAdd returns the old value and does not add, as two adds that raced would. Breaks atomicity.
	FaultLoseAdd
	// FaultNoFlush drops outstanding requests of a QP that goes to ERR. Breaks "outstanding work completes flushed".
	FaultNoFlush
	// FaultLateFlush flushes only when something is polled after Close. Breaks "before Close returns".
	FaultLateFlush
	// FaultStayUp leaves a QP as it was after a fatal error. Breaks the ERR state.
	FaultStayUp
	// FaultLoseEvent drops the event of an armed CQ. Breaks wake-up.
	FaultLoseEvent
	// FaultLoseAsync drops an asynchronous event. Breaks Device.Event.
	FaultLoseAsync
	// FaultIgnoreFence executes a fenced request at once. Shows only with Config.ReadDelay. Breaks fences.
	FaultIgnoreFence
	// FaultExceedORD sends more reads than negotiated, which the responder then
	// refuses. Shows only with Config.ReadDelay. Breaks the ORD limit.
	FaultExceedORD
	// FaultDie kills the device that is about to execute a request; see Device.Kill. Breaks everything.
	FaultDie
	numFaults
)

// NumFaults is the number of faults; every value below it is valid.
const NumFaults = int(numFaults)

var faultNames = [numFaults]string{"drop_completion", "duplicate_completion", "reorder_completions", "reorder_receives",
	"signal_all", "flip_byte", "wrong_byte_len", "lose_imm", "skip_bounds_check", "skip_access_check", "partial_write",
	"accept_old_key", "lose_add", "no_flush", "late_flush", "stay_up", "lose_event", "lose_async", "ignore_fence",
	"exceed_ord", "die"}

// String is the lower-case name.
func (f Fault) String() string {
	if f < numFaults {
		return faultNames[f]
	}
	return "fault?"
}

// Trigger says when an armed fault strikes. The zero value strikes always.
type Trigger struct {
	After  uint64  // opportunities let pass first: After 2, Times 1 is the third
	Prob   float64 // chance at each later one, drawn from Config.Seed; 0 means 1
	Times  uint64  // strikes at most; 0 means no bound
	Device string  // only on the device opened under this name; "" means any
}

func (t Trigger) String() string {
	var s []string
	if t.After > 0 {
		s = append(s, fmt.Sprintf("after=%d", t.After))
	}
	if t.Prob > 0 {
		s = append(s, fmt.Sprintf("prob=%g", t.Prob))
	}
	if t.Times > 0 {
		s = append(s, fmt.Sprintf("times=%d", t.Times))
	}
	if t.Device != "" {
		s = append(s, "device="+t.Device)
	}
	if s == nil {
		return ""
	}
	return "[" + strings.Join(s, " ") + "]"
}

// plan is the fault state of a fabric, guarded by its lock.
type plan struct {
	seed  uint64
	rng   *rand.Rand
	on    uint32 // bit set of armed faults
	rules [numFaults]rule
}

type rule struct {
	Trigger
	seen, struck uint64
}

func newPlan(seed uint64, faults map[Fault]Trigger) plan {
	p := plan{seed: seed, rng: rand.New(rand.NewPCG(seed, 0))}
	for f, t := range faults {
		if f < numFaults {
			p.arm(f, t)
		}
	}
	return p
}

func (p *plan) arm(f Fault, t Trigger) {
	p.rules[f] = rule{Trigger: t}
	p.on |= 1 << f
}

func (p *plan) armed(f Fault) bool { return p.on&(1<<f) != 0 }

func (p *plan) hit(f Fault, d *Device) bool {
	r := &p.rules[f]
	if !p.armed(f) || r.Device != "" && r.Device != d.host {
		return false
	}
	r.seen++
	if r.seen <= r.After || r.Times > 0 && r.struck >= r.Times {
		return false
	}
	if r.Prob > 0 && p.rng.Float64() >= r.Prob {
		return false
	}
	r.struck++
	return true
}

// String is the seed and the armed faults, in the order of their constants.
func (p *plan) String() string {
	s := fmt.Sprintf("seed=%d", p.seed)
	for f := Fault(0); f < numFaults; f++ {
		if p.armed(f) {
			s += "," + f.String() + p.rules[f].Trigger.String()
		}
	}
	return s
}

// Arm switches a fault on, with fresh counters, from the next opportunity on. Values that are no fault are ignored.
func (f *Fabric) Arm(fault Fault, t Trigger) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if fault < numFaults {
		f.faults.arm(fault, t)
	}
}

func (q *qp) corrupt(s *span, n int) {
	p := &q.dev.fab.faults
	if n > 0 && p.hit(FaultFlipByte, q.dev) {
		b := s.at(p.rng.IntN(n))
		storeByte(b, *b^byte(1<<p.rng.IntN(8)))
	}
}

func (q *qp) leak(wr *rdma.SendWR, src *span) {
	m := q.dev.rkeys[wr.RKey]
	if m == nil || !q.dev.fab.faults.hit(FaultPartialWrite, q.dev) {
		return
	}
	var dst span
	dst.add(m.inside(wr.RemoteAddr, wr.Len()))
	place(&dst, src)
}
