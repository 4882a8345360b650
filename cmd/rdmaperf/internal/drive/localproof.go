package drive

import (
	"cmp"
	"fmt"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/reports"
)

// LocalProof is that of a workload with both ends in its process, with a sample of one message in every, a power of
// two. Behind its number a message has the bytes of its sender, see [FillSender].
func LocalProof(r *engine.Run, every int) *Proof {
	sh := &engine.Shape{Point: r.Point, Seed: r.Plan.Seed, Verify: r.Plan.Verify,
		Timeout: cmp.Or(r.Plan.Timeout, engine.DefaultTimeout)}
	sh.VerifyAll = sh.Verify && (r.Plan.VerifyAll || every == 1)
	return &Proof{W: &engine.Worker{Sh: sh, Role: engine.SideClient}, L: &engine.Lane{Sh: sh}, every: uint64(every)}
}

// FillSender writes what surrounds the numbers of a sender.
func FillSender(b []byte, sender int) { engine.FillPattern(b, senderState(sender)) }

func senderState(sender int) uint64 { return engine.PatternState(0, 0, sender, 0) }

// Same reports whether b is message n of a sender, and counts it if it is.
func (p *Proof) Same(b []byte, sender int, n uint64) bool {
	if i, _ := matchMessage(b, n, senderState(sender)); i >= 0 {
		return false
	}
	p.W.Compared.Message(len(b))
	return true
}

// Corrupt is the error about a message that was not the same.
func (p *Proof) Corrupt(b []byte, sender int, n uint64) error {
	i, want := matchMessage(b, n, senderState(sender))
	return p.corrupt(fmt.Sprintf("message %d of sender %d", n, sender), i, want, b[max(i, 0)])
}

// Take returns what was compared of so many messages since the last call.
func (p *Proof) Take(messages int64) *reports.Verification {
	v := p.L.Sh.Verification(p.W.Compared, messages)
	p.W.Compared = engine.Compared{}
	return v
}

// AllCompared is the verification of a workload that compares each message whole, whatever --verify is.
func AllCompared(messages, bytes int64) *reports.Verification {
	return &reports.Verification{Mode: reports.VerifyAll, Messages: messages, Numbers: messages, Whole: messages,
		Bytes: bytes}
}
