package bench

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/rdmaperf/rdmaperf/transports"
)

// The head-of-line workload: small probes beside a bulk stream. A probe is a
// send that the target answers with the bytes that came. Bulk is written into
// window slots, or sent. In the arm same-qp both travel on one QP, where a probe
// waits for the bulk posted before it; in two-qp the probes have a QP of their
// own on the same device, driven by the same thread. In app-slicing they share a QP
// as well, but the client does what applications do about it (BytePS): it cuts a
// bulk write into slices before posting and keeps few of them outstanding.
//
// Everything that consumes a receive is told apart by its length: probes are
// shorter than bulk, and an empty message is a barrier of the client or, from the
// server, its answer or a credit for creditEvery bulk messages.

// Arms of the head-of-line workload, as --hol-arm and HOL.Arm spell them.
const (
	ArmSameQP     = "same-qp"
	ArmTwoQP      = "two-qp"
	ArmAppSlicing = "app-slicing"
)

// Arms lists the known arms.
func Arms() []string { return []string{ArmSameQP, ArmTwoQP, ArmAppSlicing} }

// StandardArms lists those that are measured when none is named.
func StandardArms() []string { return []string{ArmSameQP, ArmTwoQP} }

const (
	// DefaultAppSlice and DefaultAppWindow keep 256 KiB outstanding, above the
	// bandwidth-delay product of 100 Gb/s over 20 µs.
	DefaultAppSlice  = 64 << 10
	DefaultAppWindow = 4
	minAppSlice      = 1 << 10

	DefaultBulkDepth = 16
	DefaultProbeSize = 64

	// DefaultProbeInterval keeps probes rare enough not to be a load themselves,
	// and gives the 1000 samples of a trustworthy p99 in half a second.
	DefaultProbeInterval = 500 * time.Microsecond

	// maxProbeInterval is below every sensible timeout: a longer pause could not be
	// told from a peer that is gone.
	maxProbeInterval = time.Second

	// Probes under way at once. More that are due wait, and their wait is measured.
	// With bulk sends every receive has room for a bulk message, so there are fewer.
	probeSlotsWrite = 128
	probeSlotsSend  = 16

	// holSlack is the receives for what is neither a probe nor bulk: barriers and
	// credits. At most creditRoom/creditEvery + 1 are under way, which is below 6.
	holSlack = 8

	// probePattern is the pattern's slot number of the probes' source region, above
	// every number of a bulk slot.
	probePattern = maxDepth
)

// Slots of send-side operations, by which their completions are told apart. Bulk
// has the number of operations that it completes, as in streams.
const (
	slotBulk    = 1
	slotProbe   = 2
	slotBarrier = 3
)

// holShape fills in what the head-of-line workload needs.
func (sh *Shape) holShape(p *Plan, _ transports.Caps) {
	sh.Threads, sh.QPs, sh.Moderation = 1, 1, 1
	if sh.Arm == ArmTwoQP {
		sh.QPs = 2
	}
	sh.Depth, sh.ProbeSize, sh.ProbePriority = p.BulkDepth, p.ProbeSize, p.ProbePriority
	if sh.Arm == ArmAppSlicing {
		sh.AppSlice, sh.AppWindow = p.AppSlice, p.AppWindow
	}
	sh.Slots = max(1, min(sh.Depth, slotBudget/sh.stride()))
	sh.ProbeSlots = probeSlots(sh.kind())
	sh.RecvDepth = sh.holReceives()
}

func probeSlots(k transports.Kind) int {
	if k == transports.KindSend {
		return probeSlotsSend
	}
	return probeSlotsWrite
}

// holReceives is the number of receives a side has posted. A probe's receive comes
// back when its echo is complete, which may be after the client has the echo and
// has sent another probe: as many probes may be under way as echoes leaving.
func (sh *Shape) holReceives() int {
	n := 2*sh.ProbeSlots + holSlack
	if sh.kind() == transports.KindSend {
		n += sh.creditRoom()
	}
	return n
}

// holCredit is after how many bulk messages the target says that it took them.
func (sh *Shape) holCredit() int { return max(1, sh.Depth/2) }

// creditRoom is how many bulk messages may be sent beyond the last credit.
func (sh *Shape) creditRoom() int { return sh.Depth + sh.holCredit() }

// validateHOL checks a shape that came over the wire.
func (sh *Shape) validateHOL() error {
	want := 1
	if sh.Arm == ArmTwoQP {
		want = 2
	}
	switch {
	case sh.Polling != PollingBusy:
		return errors.New("the head-of-line workload needs busy polling")
	case sh.QPs != want || sh.Threads != 1:
		return fmt.Errorf("arm %s on %d QPs and %d threads", sh.Arm, sh.QPs, sh.Threads)
	case sh.ProbeSize < 1 || sh.ProbeSize >= sh.Size:
		return errProbeSize(sh.ProbeSize, sh.Size)
	case (sh.Arm == ArmAppSlicing) != (sh.AppWindow > 0), sh.AppWindow < 0 || sh.AppWindow > maxDepth/2,
		sh.Arm == ArmAppSlicing && (sh.AppSlice < minAppSlice || sh.AppSlice > maxSize):
		return fmt.Errorf("slices of %d bytes, %d outstanding, in arm %s", sh.AppSlice, sh.AppWindow, sh.Arm)
	case sh.ProbeSlots != probeSlots(sh.kind()) || sh.RecvDepth != sh.holReceives() || sh.Moderation != 1:
		return fmt.Errorf("%d probes under way and %d receives", sh.ProbeSlots, sh.RecvDepth)
	}
	return nil
}

func errProbeSize(probe, bulk int) error {
	return fmt.Errorf("probe size %d: want 1 byte to less than the bulk size of %d", probe, bulk)
}

// validateHOL checks what only this workload has.
func (p Point) validateHOL() error {
	switch {
	case p.Op != transports.KindWrite.String() && p.Op != transports.KindSend.String():
		return errors.New("the bulk stream is of write or send")
	case !slices.Contains(Arms(), p.Arm):
		return fmt.Errorf("arm %q: want one of %v", p.Arm, Arms())
	case p.Arm == ArmAppSlicing && p.Op != transports.KindWrite.String():
		return errors.New("arm app-slicing is of write: one send takes one receive, and the peer would have to put slices together")
	case p.QPs != 0:
		return errors.New("its QPs are those of the arm")
	}
	return nil
}

// Layout, the same on both sides: the bulk sources, the probes' sources, the
// slots that bulk writes fill, and the receives.
//
//	0          | probeTx(0) … | rxOff   …  | holRecv(0) …

func (sh *Shape) probeStride() int  { return (sh.ProbeSize + slotAlign - 1) &^ (slotAlign - 1) }
func (sh *Shape) probeTx(i int) int { return sh.Slots*sh.stride() + i*sh.probeStride() }

func (sh *Shape) holRecvStride() int {
	if sh.kind() == transports.KindSend {
		return sh.stride()
	}
	return sh.probeStride()
}

func (sh *Shape) holRecv(i int) int {
	at := sh.rxOff()
	if sh.kind() == transports.KindWrite {
		at += sh.Slots * sh.stride()
	}
	return at + i*sh.holRecvStride()
}

// holLane is what a lane of this workload has beside a stream's.
type holLane struct {
	// Target.
	held  []uint64 // by receive: 1 + the number of the bulk message it holds, 0 for none
	bulk  uint64   // bulk messages of this phase
	taken int      // of the session, since the last credit
	owed  int      // empty messages to send

	// Probes to be answered, by receive, oldest first. At most ProbeSlots echoes
	// leave at once.
	queue   []uint32
	first   int
	waiting int
	leaving int

	// Initiator. cut is how many bytes of the message at the head are posted as slices.
	cut      int
	barriers uint64 // answered, of the session
	empties  uint64 // empty messages received, of the session
	answered bool   // the phase's barrier was
}

// prepareHOL makes the receives of a lane.
func (l *lane) prepareHOL() {
	sh := l.sh
	l.hol = &holLane{held: make([]uint64, sh.RecvDepth), queue: make([]uint32, sh.RecvDepth)}
	l.recvs = make([]transports.Op, sh.RecvDepth)
	for i := range l.recvs {
		l.recvs[i] = transports.Op{Kind: transports.KindRecv, Local: uint64(sh.holRecv(i)), Len: uint32(sh.holRecvStride()), Slot: uint32(i)}
	}
}

// seekHOL starts a phase.
func (l *lane) seekHOL() {
	l.first, l.head, l.out = 0, 0, 0
	l.posted, l.tail, l.fenced = 0, false, false
	clear(l.hol.held)
	l.hol.bulk, l.hol.answered, l.hol.cut = 0, false, 0
}

// probeFlags are those of a probe and of its echo.
func (sh *Shape) probeFlags() transports.OpFlags {
	if sh.ProbeSize <= sh.Inline {
		return transports.Inline
	}
	return 0
}
