package pairs

import (
	"fmt"
	"time"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/drive"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/reports"
)

// Proof numbers messages and compares them where they arrived. Each has its number in
// front and behind it the pattern of its sender, so that one which is lost, doubled,
// exchanged with another or changed is told from the right one.
type Proof struct {
	Workload string
	Limit    time.Duration // how long the bytes of a completed message may be on their way

	mode  string
	seed  uint64
	every uint64 // of so many messages one is compared by default
	tally reports.Verification
}

// NewProof is that of a plan, which compares one of every messages unless all or none.
func NewProof(p *engine.Plan, workload string, every int) *Proof {
	c := &Proof{Workload: workload, Limit: p.Timeout, mode: reports.VerifyNone, seed: p.Seed, every: uint64(every)}
	switch {
	case p.Verify && (p.VerifyAll || every == 1):
		c.mode = reports.VerifyAll
	case p.Verify:
		c.mode = reports.VerifySample
	}
	if c.Limit <= 0 {
		c.Limit = 10 * time.Second
	}
	return c
}

// Fill writes what surrounds the numbers of a sender.
func Fill(b []byte, sender int) { engine.FillPattern(b, stateOf(sender)) }

func stateOf(sender int) uint64 { return engine.PatternState(0, 0, sender, 0) }

// Stamp writes a number into a message that Fill has made.
func Stamp(b []byte, number uint64) { drive.PutNumber(b, number) }

// On tells whether anything is compared.
func (p *Proof) On() bool { return p.mode != reports.VerifyNone }

// Chosen tells whether a message belongs to the sample, which the seed draws.
func (p *Proof) Chosen(number uint64) bool {
	return p.mode == reports.VerifyAll || p.mode == reports.VerifySample && drive.Sampled(p.seed, number, p.every)
}

// Same tells whether b is a message, and counts it if it is.
func (p *Proof) Same(b []byte, sender int, number uint64) bool {
	if at, _ := drive.MatchMessage(b, number, stateOf(sender)); at >= 0 {
		return false
	}
	p.tally.Numbers++
	p.tally.Whole++
	p.tally.Bytes += int64(len(b))
	return true
}

// Corrupt is the error about a message that was not the same.
func (p *Proof) Corrupt(b []byte, sender int, number uint64) error {
	at, want := drive.MatchMessage(b, number, stateOf(sender))
	return Corrupted(p.Workload, "message %d of sender %d: byte %d is %#02x, want %#02x", number, sender, at,
		b[max(at, 0)], want)
}

// Corrupted is an error that ends a run with the exit code of corrupt data.
func Corrupted(workload, format string, args ...any) error {
	return &reports.ExitError{Code: reports.ExitCorruption, Operation: workload, Err: fmt.Errorf(format, args...)}
}

// Take returns what was compared of so many messages since the last call.
func (p *Proof) Take(messages int64) *reports.Verification {
	v := p.tally
	p.tally = reports.Verification{}
	v.Mode, v.Messages = p.mode, messages
	return &v
}

// Compared is what a workload says that compares every message whole, whatever --verify is.
func Compared(messages, bytes int64) *reports.Verification {
	return &reports.Verification{Mode: reports.VerifyAll, Messages: messages, Numbers: messages, Whole: messages,
		Bytes: bytes}
}
