package engine

import (
	"fmt"

	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/transports"
)

// Compared counts what was compared in a phase.
type Compared struct {
	Numbers  int64 `json:"numbers,omitempty"`  // messages whose number was compared
	Messages int64 `json:"messages,omitempty"` // of these, compared byte by byte
	Bytes    int64 `json:"bytes,omitempty"`    // of all comparisons
}

func (c *Compared) add(o Compared) {
	c.Numbers += o.Numbers
	c.Messages += o.Messages
	c.Bytes += o.Bytes
}

// Number counts one whose number was compared, in so many bytes.
func (c *Compared) Number(bytes int) {
	c.Numbers++
	c.Bytes += int64(bytes)
}

// Message counts one that was compared byte by byte.
func (c *Compared) Message(bytes int) {
	c.Numbers++
	c.Messages++
	c.Bytes += int64(bytes)
}

func (c *Group) takeCompared() (sum Compared) {
	for _, w := range c.Workers {
		sum.add(w.Compared)
		w.Compared = Compared{}
	}
	return sum
}

// TakesReceives reports operations that each consume a receive of the peer.
func TakesReceives(k transports.Kind) bool {
	return k == transports.KindSend || k == transports.KindSendImm || k == transports.KindWriteImm
}

// Miscounted is the error of messages that were lost or came twice.
func (w *Worker) Miscounted(l *Lane, got, want int64) error {
	return w.Corrupt(l, fmt.Sprintf("number of messages, %d of %d", got, want), 0, byte(want), byte(got))
}

// VerifyCounts reports whether the peer counted every QP.
func (c *Group) VerifyCounts(lanes []LaneCount) error {
	if len(lanes) != len(c.Lanes) {
		return PeerError("verify windows", fmt.Errorf("counts for %d QPs, want %d", len(lanes), len(c.Lanes)), "")
	}
	return nil
}

// Verification says what was compared of so many messages.
func (sh *Shape) Verification(c Compared, messages int64) *reports.Verification {
	v := &reports.Verification{Mode: reports.VerifyNone, Messages: messages}
	if !sh.Verify {
		return v
	}
	v.Mode = reports.VerifySample
	if sh.VerifyAll {
		v.Mode = reports.VerifyAll
	}
	v.Numbers, v.Whole, v.Bytes = c.Numbers, c.Messages, c.Bytes
	return v
}
