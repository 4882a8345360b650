package sched

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// Priorities is the number of classes: Priority is 0, the least urgent, to 7; more is refused with rdma.ErrInvalid.
const Priorities = 8

// Policy names a scheduling discipline.
type Policy string

const (
	Strict Policy = "strict" // the most urgent class first
	Aging  Policy = "aging"  // as strict, but a request rises one class for every Config.AgeEvery it waits
	DRR    Policy = "drr"    // deficit round robin: classes share the bytes by Config.Weights
	EDF    Policy = "edf"    // the earliest deadline first, which is Config.Deadlines after the post
	FIFO   Policy = "fifo"   // post order: all is handed down as it is, which shows what a layer costs
)

// Policies lists the disciplines; the first is the default.
func Policies() []Policy { return []Policy{Strict, Aging, DRR, EDF, FIFO} }

// Sends says what becomes of a send that is longer than a slice.
type Sends string

const (
	WholeSends Sends = "whole" // it goes in one piece, and an urgent request waits for it
	// RefuseSends: it is refused with rdma.ErrInvalid; an automatic slice is as long as it is at the post.
	RefuseSends Sends = "refuse"
	// CutSends: it is cut where the peer's tier cuts too, else whole; CutOrRefuseSends refuses what could never be cut.
	CutSends         Sends = "slice"
	CutOrRefuseSends Sends = "slice-or-refuse"
)

// Immediates says what becomes of a write with immediate that is longer than a slice.
type Immediates string

const (
	// WholeImmediates: it goes in one piece, and an urgent request waits for it.
	WholeImmediates Immediates = "whole"
	// LastImmediates: it is cut; the immediate is in the last slice, whose length alone the peer's completion tells.
	LastImmediates Immediates = "last"
)

// Config shapes a tier. The zero value is strict priority, with slices and window by measurement.
type Config struct {
	Policy     Policy
	Scope      Scope // which QPs share a window; "": ScopeQP
	Slice      int   // bytes of a slice; 0: a quarter of the window
	Window     int   // bytes under way a class may have; 0: from the measured bandwidth-delay product
	Adaptive   bool  // window and slice are widened while nothing urgent is about, also where they are configured
	Steady     bool  // they are not, also where both are automatic
	Sends      Sends
	Room       int // CutSends: bytes that a peer's cut sends may take here, per connection; 0: 4 MiB
	Immediates Immediates
	AgeEvery   time.Duration             // Aging; 0: 1 ms
	Weights    [Priorities]int           // DRR, by class; all 0: 1, 2, 4 … 128
	Deadlines  [Priorities]time.Duration // EDF, by class; all 0: 128 ms, 64 ms … 1 ms
}

// Limits.
const (
	minSlice    = 1 << 10
	maxSlice    = 1 << 30
	maxWindow   = 1 << 30
	maxWeight   = 1 << 16
	maxMarks    = 8      // marks under way on a QP
	hiddenSends = 64     // send queue places beyond the user's: slices, marks, the drain marker
	batchLen    = 64 + 2 // requests posted below at once, at most: as many as users often do, and two of the tier's
	cqSpare     = 1024   // completion queue entries for what the user does not see
	minCQExtra  = 3      // of those, what every QP is sure of: a mark, a drain marker and the read that fills ORD

	startWindow = 4 * fpdu // at first and at least, where completions are local
	leastWindow = 64 << 10 // below it, system calls and segments cost more than the wait; twice that at the start
	mostWindow  = 64 << 20
)

func (c *Config) normal() (Config, error) {
	n := *c
	bad := func(what string) (Config, error) {
		return n, &rdma.OpError{Op: "open sched", Object: what, Err: rdma.ErrInvalid}
	}
	n.Policy, n.Scope, n.Sends = cmp.Or(n.Policy, Strict), cmp.Or(n.Scope, ScopeQP), cmp.Or(n.Sends, WholeSends)
	n.Room, n.Immediates = cmp.Or(n.Room, defaultRoom), cmp.Or(n.Immediates, WholeImmediates)
	n.AgeEvery = cmp.Or(n.AgeEvery, time.Millisecond)
	if _, known := disciplines[n.Policy]; !known {
		return bad("policy " + strconv.Quote(string(n.Policy)))
	}
	if !slices.Contains([]Scope{ScopeQP, ScopePeer, ScopeDevice}, n.Scope) {
		return bad(fmt.Sprintf("scope %q, want qp, peer or device", string(n.Scope)))
	}
	if n.Scope != ScopeQP && n.Policy == FIFO {
		return bad("scope " + string(n.Scope) + " of the policy fifo, which schedules nothing")
	}
	if !slices.Contains([]Sends{WholeSends, RefuseSends, CutSends, CutOrRefuseSends}, n.Sends) {
		return bad(fmt.Sprintf("sends %q, want whole, refuse, slice or slice-or-refuse", string(n.Sends)))
	}
	if n.Room < minRoom || n.Room > maxRoom {
		return bad(fmt.Sprintf("room of %d bytes for cut sends, want %d to %d", n.Room, minRoom, maxRoom))
	}
	if n.Immediates != WholeImmediates && n.Immediates != LastImmediates {
		return bad("immediates " + strconv.Quote(string(n.Immediates)))
	}
	if n.Slice != 0 && (n.Slice < minSlice || n.Slice > maxSlice) {
		return bad(fmt.Sprintf("slice of %d bytes, want %d to %d", n.Slice, minSlice, maxSlice))
	}
	if n.Window != 0 && (n.Window < max(n.Slice, minSlice) || n.Window > maxWindow) {
		return bad(fmt.Sprintf("window of %d bytes, want a slice to %d", n.Window, maxWindow))
	}
	if n.Adaptive && n.Steady {
		return bad("a window that is both adaptive and steady")
	}
	if n.AgeEvery < time.Microsecond || n.AgeEvery > time.Hour {
		return bad(fmt.Sprintf("age of %v a class", n.AgeEvery))
	}
	if n.Weights == ([Priorities]int{}) {
		for i := range n.Weights {
			n.Weights[i] = 1 << i
		}
	}
	for i, w := range n.Weights {
		if w < 1 || w > maxWeight {
			return bad(fmt.Sprintf("weight %d of class %d, want 1 to %d", w, i, maxWeight))
		}
	}
	if n.Deadlines == ([Priorities]time.Duration{}) {
		for i := range n.Deadlines {
			n.Deadlines[i] = time.Millisecond << (Priorities - 1 - i)
		}
	}
	for i, d := range n.Deadlines {
		if d < time.Microsecond || d > time.Hour {
			return bad(fmt.Sprintf("deadline %v of class %d", d, i))
		}
	}
	return n, nil
}

func (c *Config) cutsSends() bool {
	return (c.Sends == CutSends || c.Sends == CutOrRefuseSends) && c.Policy != FIFO
}

func (c *Config) adapts() bool { return c.Adaptive || c.Window == 0 && c.Slice == 0 && !c.Steady }

func (c *Config) slices() rdma.OpSet {
	if c.Immediates == LastImmediates {
		return rdma.Ops(rdma.OpWrite, rdma.OpRead, rdma.OpWriteImm)
	}
	return rdma.Ops(rdma.OpWrite, rdma.OpRead)
}

// name is the tier's part of the stack name: what departs from the default, as charts have little room.
func (c *Config) name() string {
	p := []string{string(c.Policy)}
	if c.Policy != FIFO {
		p = append(p, "slice="+sizeText(c.Slice), "window="+sizeText(c.Window))
		if c.Scope != ScopeQP {
			p = append(p, "scope="+string(c.Scope))
		}
		if c.Sends != WholeSends {
			p = append(p, "sends="+string(c.Sends))
		}
		if c.cutsSends() && c.Room != defaultRoom {
			p = append(p, "room="+sizeText(c.Room))
		}
		if c.Immediates != WholeImmediates {
			p = append(p, "imm="+string(c.Immediates))
		}
		switch auto := c.Window == 0 && c.Slice == 0; {
		case auto && c.Steady:
			p = append(p, "steady")
		case !auto && c.Adaptive:
			p = append(p, "adaptive")
		}
	}
	usual, _ := (&Config{}).normal()
	switch {
	case c.Policy == Aging && c.AgeEvery != usual.AgeEvery:
		p = append(p, "every="+c.AgeEvery.String())
	case c.Policy == DRR && c.Weights != usual.Weights:
		p = append(p, "weights="+list(c.Weights[:]))
	case c.Policy == EDF && c.Deadlines != usual.Deadlines:
		p = append(p, "deadlines="+list(c.Deadlines[:]))
	}
	return "sched(" + strings.Join(p, ",") + ")"
}

func list[T any](values []T) string {
	var texts []string
	for _, v := range values {
		texts = append(texts, fmt.Sprint(v))
	}
	return strings.Join(texts, ":")
}

func sizeText(n int) string {
	switch {
	case n == 0:
		return "auto"
	case n%(1<<20) == 0:
		return strconv.Itoa(n>>20) + "MiB"
	case n%(1<<10) == 0:
		return strconv.Itoa(n>>10) + "KiB"
	}
	return strconv.Itoa(n)
}
