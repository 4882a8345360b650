package conform

import (
	"context"
	"errors"
	"time"

	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// Harness supplies the devices under test.
type Harness interface {
	// Name is the stack name that reports and ledgers use.
	Name() string
	// Pair returns the initiator's and the acceptor's device, which may be the same
	// one, and the address to give to b.Listen (port 0). It is called once a case
	// and may return the devices of the call before. The harness owns them: it
	// closes what it replaces here, and the rest in Close.
	Pair(ctx context.Context) (a, b rdma.Device, listenAddr string, err error)
	Close() error
}

// Killer is a Harness that can end device b of the last Pair as a dead process
// or a lost link would: no orderly goodbye. The next Pair must bring a new one.
type Killer interface {
	Kill(ctx context.Context) error
}

// Addr6er is a Harness whose devices can listen at an address of IPv6 too, given with
// port 0; "" where they cannot.
type Addr6er interface{ Addr6() string }

// Pather is a Harness that can put its devices at the ends of a path that it can harm.
type Pather interface {
	// PathPair is Pair with a path between a and b, whose connections end when octets
	// stay unacknowledged for giveUp.
	PathPair(ctx context.Context, giveUp time.Duration) (a, b rdma.Device, listenAddr string, p Path, err error)
	// NoPath says why there is none; "" where there is one.
	NoPath() string
}

// Path is what lies between two devices.
type Path interface {
	// Harm loses, doubles and reorders packets with these probabilities, each way.
	Harm(loss, double, reorder float64)
	// Cut lets no packet through, or all again.
	Cut(bool)
	// Stop stops device b as a stopped process is, or lets it go on. Nobody may use b
	// while it is stopped.
	Stop(bool)
	// Counts is how many packets came, and how many of them were lost.
	Counts() (packets, lost uint64)
	Close() error
}

// PathOpener makes a pair of devices with a path between them.
type PathOpener func(ctx context.Context, giveUp time.Duration) (a, b rdma.Device, listenAddr string, p Path, err error)

// WithPath gives a harness of Fresh or FreshKiller paths, or the reason why it has none.
func WithPath(h Harness, open PathOpener, why string) Harness {
	h.(interface{ setPath(PathOpener, string) }).setPath(open, why)
	return h
}

// WithAddr6 gives a harness of Fresh or FreshKiller an address of IPv6.
func WithAddr6(h Harness, addr string) Harness {
	h.(interface{ setAddr6(string) }).setAddr6(addr)
	return h
}

// Opener makes a pair of devices and the address to listen at.
type Opener func(ctx context.Context) (a, b rdma.Device, listenAddr string, err error)

// Fresh is a Harness that opens a new pair for every case and closes the pair
// before. Devices that do not close, because an object was left open, do not stop
// the run: Close tells of them.
func Fresh(name string, open Opener) Harness { return &fresh{name: name, open: open} }

// FreshKiller is Fresh for devices that kill can end; it returns a Killer too.
func FreshKiller(name string, open Opener, kill func(b rdma.Device) error) Harness {
	return &freshKiller{fresh{name: name, open: open}, kill}
}

type fresh struct {
	name string
	open Opener
	a, b rdma.Device
	errs []error // of devices that did not close
	six  string  // address of IPv6 to listen at

	openPath PathOpener
	noPath   string
	path     Path // of the pair; nil for none
}

func (h *fresh) setPath(open PathOpener, why string) { h.openPath, h.noPath = open, why }

func (h *fresh) NoPath() string {
	if h.openPath == nil && h.noPath == "" {
		return "harness has no path that it can harm"
	}
	return h.noPath
}

func (h *fresh) PathPair(ctx context.Context, giveUp time.Duration) (a, b rdma.Device, addr string, p Path, err error) {
	h.retire()
	h.a, h.b, addr, h.path, err = h.openPath(ctx, giveUp)
	if err != nil {
		h.a, h.b, h.path = nil, nil, nil
	}
	return h.a, h.b, addr, h.path, err
}

func (h *fresh) Addr6() string        { return h.six }
func (h *fresh) setAddr6(addr string) { h.six = addr }

func (h *fresh) Name() string { return h.name }

func (h *fresh) Pair(ctx context.Context) (a, b rdma.Device, addr string, err error) {
	h.retire()
	h.a, h.b, addr, err = h.open(ctx)
	if err != nil {
		h.a, h.b = nil, nil
	}
	return h.a, h.b, addr, err
}

func (h *fresh) retire() {
	for _, d := range []rdma.Device{h.a, h.b} {
		if d != nil {
			h.errs = append(h.errs, d.Close())
		}
	}
	h.a, h.b = nil, nil
	if h.path != nil {
		h.errs = append(h.errs, h.path.Close())
		h.path = nil
	}
}

func (h *fresh) Close() error {
	h.retire()
	return errors.Join(h.errs...)
}

type freshKiller struct {
	fresh
	kill func(b rdma.Device) error
}

func (h *freshKiller) Kill(context.Context) error { return h.kill(h.b) }
