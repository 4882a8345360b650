package hol

import (
	"errors"
	"fmt"
	"slices"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/drive"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/transports"
)

// The head-of-line workload: small probes beside a bulk stream. A probe is a
// send that the target answers with the bytes that came. Bulk is written into
// window slots, or sent. In the variant same-qp both travel on one QP, where a probe
// waits for the bulk posted before it; in two-qp the probes have a QP of their
// own on the same device, driven by the same thread. In app-slicing they share a QP
// as well, but the client does what applications do about it (BytePS): it cuts a
// bulk write into slices before posting and keeps few of them outstanding. The variant device
// is two-qp on a stack whose scheduler serves all QPs of the device.
//
// What consumes a receive differs by its length: probes are
// shorter than bulk, and an empty message is a barrier of the client or, from the
// server, its answer or a credit for CreditEvery bulk messages. Bulk is cut out of one
// source (drive.Cuts), so that each message has a number: the target compares that of
// every send when it arrives. A write completes nothing at the target: behind some passes over the slots,
// chosen by the seed, and with VerifyAll behind each, the client waits until the target has
// compared them, which it asks for with a message of its own.

// Variants of the head-of-line workload, as --hol-arm and HOL.Arm spell them.
const (
	SameQP     = "same-qp"
	TwoQP      = "two-qp"
	AppSlicing = "app-slicing"
	Device     = "device"
)

// Variants lists the known ones.
func Variants() []string { return []string{SameQP, TwoQP, AppSlicing, Device} }

// StandardVariants lists those that are measured when none is named.
func StandardVariants() []string { return []string{SameQP, TwoQP} }

const (
	// Probes under way at once. More that are due wait, and their wait is measured.
	// With bulk sends every receive has room for a bulk message, so there are fewer.
	probeSlotsWrite = 128
	probeSlotsSend  = 16

	// holSlack is the receives for what is neither a probe nor bulk: barriers and
	// credits. At most creditRoom/CreditEvery + 1 are under way, which is below 6.
	holSlack = 8

	// probePattern is the pattern's slot number of the probes' source region, above
	// every number of a bulk slot.
	probePattern = engine.MaxDepth
)

// Slots of send-side operations, by which their completions differ. Bulk
// has the number of operations that it completes, as in streams.
const (
	slotBulk    = 1
	slotProbe   = 2
	slotBarrier = 3
	slotCompare = 4
)

const noEvents = "the head-of-line workload paces and watches two things at once, so it needs busy polling"

// shape is that of a point of writes or sends.
func shape(s *engine.Setup) (*engine.Shape, error) {
	if err := check(s.Point); err != nil {
		return nil, engine.Refused(err)
	}
	if s.Plan.Polling == engine.PollingEvent {
		return nil, engine.Refused(errors.New(noEvents))
	}
	sh, err := s.NewShape()
	if err != nil {
		return nil, err
	}
	own := setUp(sh)
	sh.Threads, sh.QPs, sh.Depth, sh.Polling = 1, connections(sh.Variant), own.BulkDepth, engine.PollingBusy
	sh.Slots = max(1, min(sh.Depth, engine.SlotBudget/sh.Stride()))
	sh.RecvDepth = holReceives(sh)
	sh.Arrives(s.Caps)
	off := compareTx(sh) + engine.SlotAlign
	end := off + sh.RecvDepth*holRecvStride(sh)
	if sh.Kind() == transports.KindWrite {
		end += sh.Slots * sh.Stride()
	}
	sh.Layout = engine.Layout{RxOff: off, DataEnd: end, Window: end}
	sh.Config = sh.SessionConfig()
	// the application's slices, and probes
	sh.Config.SendDepth = max(sh.Depth, own.AppWindow) + own.probeSlots + engine.CtlSlots
	return sh, nil
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
func holReceives(sh *engine.Shape) int {
	n := 2*setUp(sh).probeSlots + holSlack
	if sh.Kind() == transports.KindSend {
		n += creditRoom(sh)
	}
	return n
}

// holCredit is after how many bulk messages the target says that it took them.
func holCredit(sh *engine.Shape) int { return max(1, sh.Depth/2) }

// creditRoom is how many bulk messages may be sent beyond the last credit.
func creditRoom(sh *engine.Shape) int { return sh.Depth + holCredit(sh) }

// check is what points of writes and sends have to be.
func check(p engine.Point) error {
	switch {
	case p.Op != transports.KindWrite.String() && p.Op != transports.KindSend.String():
		return errors.New("bulk operations are write or send")
	case !slices.Contains(Variants(), p.Variant):
		return fmt.Errorf("variant %q: want one of %v", p.Variant, Variants())
	case p.Variant == AppSlicing && p.Op != transports.KindWrite.String():
		return errors.New("variant app-slicing is of write: one send takes one receive, and the peer would have to put " +
			"slices together")
	case p.QPs != 0:
		return errors.New("its QPs are those of the variant")
	}
	return validateOptions(p)
}

// Layout, the same on both sides: the bulk's source, the probes' sources, that of what asks
// to compare, the slots that bulk writes fill, and the receives.
//
//	0          | probeTx(0) … | compareTx | RxOff   …  | holRecv(0) …

func probeStride(sh *engine.Shape) int {
	return (setUp(sh).ProbeSize + engine.SlotAlign - 1) &^ (engine.SlotAlign - 1)
}
func probeTx(sh *engine.Shape, i int) int { return drive.SourceSize(sh.Size) + i*probeStride(sh) }
func compareTx(sh *engine.Shape) int      { return probeTx(sh, setUp(sh).probeSlots) }

// compareSize is the length of what asks to compare a pass of writes, whose first number it has. No probe is as long.
func compareSize(sh *engine.Shape) int {
	if setUp(sh).ProbeSize == 8 {
		return 9
	}
	return 8
}

func holRecvStride(sh *engine.Shape) int {
	if sh.Kind() == transports.KindSend {
		return sh.Stride()
	}
	return probeStride(sh)
}

func holRecv(sh *engine.Shape, i int) int {
	at := sh.RxOff()
	if sh.Kind() == transports.KindWrite {
		at += sh.Slots * sh.Stride()
	}
	return at + i*holRecvStride(sh)
}

// holReceivesOf makes the receives of a session.
func holReceivesOf(sh *engine.Shape) []transports.Op {
	recvs := make([]transports.Op, sh.RecvDepth)
	for i := range recvs {
		recvs[i] = transports.Op{Kind: transports.KindRecv, Local: uint64(holRecv(sh, i)),
			Len: uint32(holRecvStride(sh)), Slot: uint32(i)}
	}
	return recvs
}

// probeFlags are those of a probe and of its echo.
func probeFlags(sh *engine.Shape) transports.OpFlags {
	if setUp(sh).ProbeSize <= sh.Inline {
		return transports.Inline
	}
	return 0
}
