package conformance

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/impair"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/stackspec"
	"github.com/rdmaperf/rdmaperf/transports/conform"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// pathSeed loses the same packets in every run, as far as the kernel sends the same.
const pathSeed = 1

type pathSite struct{ stackspec.Site }

// noPath says why cases of a bad path cannot run on this stack, or "".
func (at *pathSite) noPath() string {
	switch {
	case !at.OnSockets:
		return "the stack does not go through the kernel's TCP/IP, of which a path between namespaces can be made"
	case os.Geteuid() != 0:
		return "a path that can be harmed is made of network namespaces and TUN devices, which needs root"
	}
	return impair.Missing()
}

func (at *pathSite) overPath(_ context.Context, giveUp time.Duration) (a, b rdma.Device, listen string, p conform.Path,
	err error) {
	path, err := impair.Open(impair.Config{Seed: pathSeed})
	if err != nil {
		return nil, nil, "", nil, fmt.Errorf("make a path that can be harmed: %w", err)
	}
	var ends [2]rdma.Device
	for i := range ends {
		s := stackspec.Set{Sockets: path.Stack(i, giveUp)}
		if ends[i], err = s.OpenDevice(at.Spec); err != nil {
			if i > 0 {
				err = errors.Join(err, ends[0].Close())
			}
			return nil, nil, "", nil, errors.Join(err, path.Close())
		}
	}
	return ends[0], ends[1], net.JoinHostPort(impair.Addresses[1], "0"), &conformPath{path}, nil
}

type conformPath struct{ *impair.Path }

func (p *conformPath) Harm(loss, double, reorder float64) {
	p.Set(impair.Config{Loss: loss, Duplicate: double, Reorder: reorder})
}

func (p *conformPath) Cut(cut bool) {
	loss := 0.0
	if cut {
		loss = 1
	}
	p.Harm(loss, 0, 0)
}

func (p *conformPath) Stop(stop bool) {
	if stop {
		p.Path.Stop(1)
	} else {
		p.Continue(1)
	}
}

func (p *conformPath) Counts() (packets, lost uint64) {
	n := p.Path.Counts()
	return n.Packets, n.Lost
}
