package pairs

import (
	"encoding/binary"
	"fmt"
	"time"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/reports"
)

// numberBytes is how many bytes of a message are its number, as far as it has them.
const numberBytes = 8

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
	want  []byte
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
		c.Limit = 10 * time.Second // arbitrary
	}
	return c
}

// Fill writes what surrounds the numbers of a sender.
func Fill(b []byte, sender int) {
	for i := range b {
		b[i] = byte(i*7 + sender*13 + 1)
	}
}

// Stamp writes a number into a message that Fill has made.
func Stamp(b []byte, number uint64) {
	if len(b) >= numberBytes {
		binary.LittleEndian.PutUint64(b, number)
		return
	}
	for i := range b {
		b[i] = byte(number >> (8 * i))
	}
}

// On tells whether anything is compared.
func (p *Proof) On() bool { return p.mode != reports.VerifyNone }

// Chosen tells whether a message belongs to the sample, which the seed draws.
func (p *Proof) Chosen(number uint64) bool {
	return p.mode == reports.VerifyAll || p.mode == reports.VerifySample && engine.Word(p.seed, int(number))%p.every == 0
}

// Same tells whether b is a message, and counts it if it is.
func (p *Proof) Same(b []byte, sender int, number uint64) bool {
	if cap(p.want) < len(b) {
		p.want = make([]byte, len(b))
	}
	want := p.want[:len(b)]
	Fill(want, sender)
	Stamp(want, number)
	if string(b) != string(want) {
		return false
	}
	p.tally.Numbers++
	p.tally.Whole++
	p.tally.Bytes += int64(len(b))
	return true
}

// Corrupt is the error about a message that was not the same.
func (p *Proof) Corrupt(b []byte, sender int, number uint64) error {
	want := make([]byte, len(b))
	Fill(want, sender)
	Stamp(want, number)
	at := 0
	for at < len(b)-1 && b[at] == want[at] {
		at++
	}
	return Corrupted(p.Workload, "message %d of sender %d: byte %d is %#02x, want %#02x", number, sender, at, b[at], want[at])
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
	return &reports.Verification{Mode: reports.VerifyAll, Messages: messages, Numbers: messages, Whole: messages, Bytes: bytes}
}
