package grpcrdma

import (
	"cmp"
	"fmt"
	"log/slog"
	"math/bits"
	"time"

	"github.com/rdmaperf/rdmaperf/grpcrdma/bpev"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// Arrival is how a receiver learns that bytes are there.
type Arrival uint8

const (
	// ArrivalAuto takes notices where readers may sleep until the device raises an event, and watches
	// memory where they do not and that is legal.
	ArrivalAuto Arrival = iota
	// ArrivalWatch watches memory. It needs a device that places the last byte last,
	// and a polling mode with pollers.
	ArrivalWatch
	// ArrivalNotice takes a write with immediate, or a send behind the write.
	ArrivalNotice
)

var arrivalNames = [...]string{"auto", "watch", "notice"}

// String is the lower-case name.
func (a Arrival) String() string {
	if int(a) < len(arrivalNames) {
		return arrivalNames[a]
	}
	return "arrival?"
}

// Config chooses what a connection costs and how it waits. The zero value is the default.
type Config struct {
	Polling bpev.Config // zero: bpev with its defaults
	// Ring is the receive ring of a connection in bytes, a power of two from 4 KiB
	// to 1 GiB; 0 means 256 KiB. The peer's may differ. A ring that is not watched has
	// 32 KiB at most until a writer has to wait, and again when little comes.
	Ring int
	// SendBuffer is the registered copy of what is on its way, in bytes, at least
	// 4 KiB; 0 means half the ring. One record takes at most a quarter of it. It
	// grows and shrinks with the peer's ring, from 16 KiB.
	SendBuffer int
	Arrival    Arrival
	MaxConns   int // connections at once, more are refused; 0 means 65536
	// Backlog is how many diallers may wait for Accept, as of a kernel's listener; 0
	// means 4096. Those beyond it are not refused: they wait at their side (DialContext).
	Backlog int
	// Probe is how often a reader that waits checks that its peer is alive, on devices whose
	// completions prove delivery, which detect a vanished peer by nothing else. 0 means 1 s, a
	// negative value never. Other devices detect it by the byte stream below.
	Probe time.Duration
	// Log takes fallbacks and disconnected peers. nil means slog.Default().
	Log *slog.Logger
}

const (
	defaultRing  = 256 << 10
	firstRing    = 32 << 10 // of a connection without bulk
	defaultConns = 1 << 16
	// defaultBacklog is Linux's net.core.somaxconn.
	defaultBacklog = 4096
	defaultProbe   = time.Second
	// mostPolled is measured over iWARP on two CPUs, calls a second by polling over those by events: 3.2 on one
	// connection, 1.5 on two, 1.0 on four, 0.85 on eight.
	mostPolled = 3

	maxBacklog = 1 << 16 // of a kernel's listener, a 16-bit number for long

	sendDepth   = 64  // send queue of a connection
	sendReserve = 8   // of it, places that records leave to credits and the end of the stream
	noticeDepth = 120 // notices of records a connection takes before credit must return: with the spare ones 128 receives
	// noticeSpare are receives for notices that no credit counts: of credits, of
	// which the ring allows three at once, and of the end of the stream.
	noticeSpare = 8
	// inlineMax is asked of devices that take inline data: a small call's frames fit, and larger
	// work requests cost send queue memory on hardware.
	inlineMax = 256
)

func (c Config) normal(caps *rdma.Caps) (Config, error) {
	c.Ring = cmp.Or(c.Ring, defaultRing)
	c.SendBuffer = cmp.Or(c.SendBuffer, max(c.Ring/2, minRing))
	c.MaxConns = cmp.Or(c.MaxConns, defaultConns)
	c.Backlog = cmp.Or(c.Backlog, defaultBacklog)
	c.Probe = cmp.Or(c.Probe, defaultProbe)
	c.Log = cmp.Or(c.Log, slog.Default())
	switch {
	case c.Ring < minRing || c.Ring > maxRing || bits.OnesCount(uint(c.Ring)) != 1:
		return c, fmt.Errorf("ring of %d bytes, want a power of two from %d to %d: %w", c.Ring, minRing, maxRing,
			rdma.ErrInvalid)
	case c.SendBuffer < minRing || c.SendBuffer > maxRing || c.SendBuffer%(4*unit) != 0:
		return c, fmt.Errorf("send buffer of %d bytes, want a multiple of %d from %d to %d: %w", c.SendBuffer, 4*unit,
			minRing, maxRing, rdma.ErrInvalid)
	case c.MaxConns < 0:
		return c, fmt.Errorf("%d connections at most: %w", c.MaxConns, rdma.ErrInvalid)
	case c.Backlog < 1 || c.Backlog > maxBacklog:
		return c, fmt.Errorf("backlog %d, want 1 to %d: %w", c.Backlog, maxBacklog, rdma.ErrInvalid)
	case int(c.Arrival) >= len(arrivalNames):
		return c, fmt.Errorf("arrival %d: %w", c.Arrival, rdma.ErrInvalid)
	}
	var err error
	if c.Polling, err = c.Polling.Normal(); err != nil {
		return c, err
	}
	if !caps.Unaided { // each look is a system call
		c.Polling.MostPolled = cmp.Or(c.Polling.MostPolled, mostPolled)
	}
	need := rdma.Need{Ops: rdma.Ops(rdma.OpWrite)}
	if !caps.Ops.Has(rdma.OpWriteImm) {
		need.Ops |= rdma.Ops(rdma.OpSend)
	}
	if c.Polling.Mode == bpev.Event {
		need.Features |= rdma.FeatEvents
		if c.Arrival == ArrivalWatch {
			return c, fmt.Errorf("event mode sees no memory: arrival watch: %w", rdma.ErrInvalid)
		}
	}
	if c.Arrival == ArrivalWatch {
		need.Features |= rdma.FeatLastByteLast
	}
	if err := caps.Missing(need); err != nil {
		return c, err
	}
	if caps.MaxPrivate < greetingLen {
		return c, &rdma.MissingError{Gaps: []string{fmt.Sprintf("%d bytes of private data", greetingLen)}}
	}
	if c.Arrival == ArrivalAuto {
		c.Arrival = ArrivalNotice
		polled := c.Polling.Mode == bpev.BP || c.Polling.Mode == bpev.BPEV && !caps.Features.Has(rdma.FeatEvents)
		if caps.Features.Has(rdma.FeatLastByteLast) && polled {
			c.Arrival = ArrivalWatch
		}
	}
	return c, nil
}
