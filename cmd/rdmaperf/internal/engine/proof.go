package engine

import (
	"fmt"

	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/transports"
)

// compared counts what was compared in a phase.
type compared struct {
	Numbers  int64 `json:"numbers,omitempty"`  // messages whose number was compared
	Messages int64 `json:"messages,omitempty"` // of these, compared whole
	Bytes    int64 `json:"bytes,omitempty"`    // of all comparisons
}

func (c *compared) add(o compared) {
	c.Numbers += o.Numbers
	c.Messages += o.Messages
	c.Bytes += o.Bytes
}

// Message counts one that was compared whole.
func (c *compared) Message(bytes int) {
	c.Numbers++
	c.Messages++
	c.Bytes += int64(bytes)
}

// takeCompared sums up what the workers compared since it was asked last.
func (c *Group) takeCompared() (sum compared) {
	for _, w := range c.Workers {
		sum.add(w.Compared)
		w.Compared = compared{}
	}
	return sum
}

// TakesReceives tells operations that each consume a receive of the peer.
func TakesReceives(k transports.Kind) bool {
	return k == transports.KindSend || k == transports.KindSendImm || k == transports.KindWriteImm
}

// Miscounted is the error of messages that were lost or came twice.
func (w *Worker) Miscounted(l *Lane, got, want int64) error {
	return w.Corrupt(l, fmt.Sprintf("number of messages, %d of %d", got, want), 0, byte(want), byte(got))
}

// VerifyCounts tells whether the peer counted every QP.
func (c *Group) VerifyCounts(lanes []LaneCount) error {
	if len(lanes) != len(c.Lanes) {
		return PeerError("verify windows", fmt.Errorf("counts for %d QPs, want %d", len(lanes), len(c.Lanes)), "")
	}
	return nil
}

// verification says what was compared of so many messages of the measured phase.
func (m *Measurement) verification(messages int64) *reports.Verification {
	v := &reports.Verification{Mode: reports.VerifyNone, Messages: messages}
	if !m.Sh.Verify {
		return v
	}
	v.Mode = reports.VerifySample
	if m.Sh.VerifyAll {
		v.Mode = reports.VerifyAll
	}
	v.Numbers, v.Whole, v.Bytes = m.compared.Numbers, m.compared.Messages, m.compared.Bytes
	return v
}
