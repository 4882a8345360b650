package conform

import (
	"context"
	"errors"
	"time"

	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// Opener makes the initiator's and the acceptor's device, which may be the same one, and
// the address to give to b.Listen, with port 0.
type Opener func(ctx context.Context) (a, b rdma.Device, listenAddr string, err error)

// PathOpener is an Opener of devices with a path between them, whose connections end when
// octets stay unacknowledged for giveUp.
type PathOpener func(ctx context.Context, giveUp time.Duration) (a, b rdma.Device, listenAddr string, p Path, err error)

// Harness opens the devices under test: a new pair for every case, after it has closed the pair before. Devices that do
// not close, because an object was left open, do not stop the run: Close returns their errors.
type Harness struct {
	Name     string                    // of the stack, for reports and ledgers
	Open     Opener                    // of ordinary cases
	Kill     func(b rdma.Device) error // ends b as a dead process or a lost link would; nil: impossible
	Addr6    string                    // where devices can listen with IPv6, with port 0; "" for nowhere
	OpenPath PathOpener                // of cases that harm a path; nil: impossible
	NoPath   string                    // why there is no path; "" where there is one

	a, b rdma.Device
	path Path // of the pair; nil for none
	errs []error
}

// Path is what lies between two devices.
type Path interface {
	// Harm loses, doubles and reorders packets with these probabilities, each way.
	Harm(loss, double, reorder float64)
	// Cut lets no packet through, or all again.
	Cut(bool)
	// Stop stops device b as a stopped process is, or lets it go on. Nobody may use b while it is stopped.
	Stop(bool)
	// Counts is how many packets came, and how many of them were lost.
	Counts() (packets, lost uint64)
	Close() error
}

func (h *Harness) noPath(c *Case) string {
	if c.Path > 0 && h.OpenPath == nil && h.NoPath == "" {
		return "harness has no path that it can harm"
	}
	if c.Path > 0 {
		return h.NoPath
	}
	return ""
}

func (h *Harness) pair(ctx context.Context, c *Case) (listenAddr string, err error) {
	h.retire()
	if c.Path > 0 && h.noPath(c) == "" {
		h.a, h.b, listenAddr, h.path, err = h.OpenPath(ctx, c.Path)
	} else {
		h.a, h.b, listenAddr, err = h.Open(ctx)
	}
	if err != nil {
		h.a, h.b, h.path = nil, nil, nil
	}
	return listenAddr, err
}

func (h *Harness) retire() {
	for _, d := range []rdma.Device{h.a, h.b} {
		if d != nil {
			h.errs = append(h.errs, d.Close())
		}
	}
	if h.path != nil {
		h.errs = append(h.errs, h.path.Close())
	}
	h.a, h.b, h.path = nil, nil, nil
}

// Close closes the last pair.
func (h *Harness) Close() error {
	h.retire()
	return errors.Join(h.errs...)
}

// What cases need of a device: what they post, besides the sends that every connection starts with. The coverage check
// derives from it which declared capabilities were proven.
var (
	needFetchAdd      = rdma.Need{Ops: rdma.Ops(rdma.OpFetchAdd)}
	needCmpSwap       = rdma.Need{Ops: rdma.Ops(rdma.OpCmpSwap)}
	needFence         = rdma.Need{Ops: rdma.Ops(rdma.OpRead, rdma.OpWrite, rdma.OpSend), Features: rdma.FeatFence}
	needFenceAdd      = rdma.Need{Ops: rdma.Ops(rdma.OpFetchAdd, rdma.OpWrite, rdma.OpSend), Features: rdma.FeatFence}
	needEvents        = rdma.Need{Ops: rdma.Ops(rdma.OpSend), Features: rdma.FeatEvents}
	needEventsRead    = rdma.Need{Ops: rdma.Ops(rdma.OpSend, rdma.OpRead), Features: rdma.FeatEvents}
	needSolicited     = rdma.Need{Ops: rdma.Ops(rdma.OpSend), Features: rdma.FeatEvents | rdma.FeatSolicited}
	needAsync         = rdma.Need{Features: rdma.FeatAsyncEvents}
	needAsyncWrite    = rdma.Need{Ops: rdma.Ops(rdma.OpWrite), Features: rdma.FeatAsyncEvents}
	needInline        = rdma.Need{Ops: rdma.Ops(rdma.OpSend, rdma.OpWrite), Features: rdma.FeatInline, Inline: 1}
	needInlineSGE     = rdma.Need{Ops: rdma.Ops(rdma.OpSend), Features: rdma.FeatInline, Inline: 2, SGE: 2}
	needInlineRd      = rdma.Need{Ops: rdma.Ops(rdma.OpRead), Features: rdma.FeatInline, Inline: 8}
	needSendImm       = rdma.Need{Ops: rdma.Ops(rdma.OpSendImm)}
	needImmPayload    = rdma.Need{Ops: rdma.Ops(rdma.OpSendImm), Features: rdma.FeatImmPayload}
	needWriteImm      = rdma.Need{Ops: rdma.Ops(rdma.OpWriteImm)}
	needSendInv       = rdma.Need{Ops: rdma.Ops(rdma.OpSendInv, rdma.OpWrite)}
	needLocalInv      = rdma.Need{Ops: rdma.Ops(rdma.OpLocalInv, rdma.OpWrite)}
	needSend          = rdma.Need{Ops: rdma.Ops(rdma.OpSend)}
	needWrite         = rdma.Need{Ops: rdma.Ops(rdma.OpWrite)}
	needRead          = rdma.Need{Ops: rdma.Ops(rdma.OpRead)}
	needSendWrite     = rdma.Need{Ops: rdma.Ops(rdma.OpSend, rdma.OpWrite)}
	needSendWriteRead = rdma.Need{Ops: rdma.Ops(rdma.OpSend, rdma.OpWrite, rdma.OpRead)}
	needWriteRead     = rdma.Need{Ops: rdma.Ops(rdma.OpWrite, rdma.OpRead)}
	needSendTwoSGE    = rdma.Need{Ops: rdma.Ops(rdma.OpSend), SGE: 2}
	needSRQ           = rdma.Need{Ops: rdma.Ops(rdma.OpSend), Features: rdma.FeatSRQ}
	needSRQEvent      = rdma.Need{Ops: rdma.Ops(rdma.OpSend), Features: rdma.FeatSRQ | rdma.FeatAsyncEvents}
	needKept          = rdma.Need{Ops: rdma.Ops(rdma.OpSend), Features: rdma.FeatKeepsKeys}
	needRNR           = rdma.Need{Ops: rdma.Ops(rdma.OpSend), Features: rdma.FeatRNRRetry}
)
