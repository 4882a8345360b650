package rank

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/allreduce/mesh"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// Open opens the device of a stack. The rank closes it.
type Open func(stack string) (rdma.Device, error)

// Link is the way to the parent: JSON values in order. Receive is io.EOF at the end.
type Link interface {
	Send(v any) error
	Receive(ctx context.Context, v any) error
}

// Serve is the rank's life: it does what it is told until the link or ctx ends, or until
// something fails, which it says.
func Serve(ctx context.Context, link Link, open Open) (err error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	s := &server{open: open}
	defer func() { err = errors.Join(err, s.close()) }()
	for {
		var o Order
		if err := link.Receive(ctx, &o); err != nil {
			return err
		}
		a, err := s.obey(ctx, o)
		if err != nil {
			a = Answer{Fault: &Fault{Message: err.Error(), Corrupt: errors.Is(err, errSum),
				Unsupported: errors.Is(err, rdma.ErrNotSupported)}}
		}
		if e := link.Send(a); e != nil {
			return e
		}
		if err != nil {
			return nil // the parent has heard
		}
	}
}

// server is what a rank has.
type server struct {
	open  Open
	dev   rdma.Device
	mesh  *mesh.Mesh
	hello Hello
	left  []func() error // what a failed measurement held, which queue pairs may still use
}

func (s *server) close() error {
	var errs []error
	if s.mesh != nil {
		errs = append(errs, s.mesh.Close())
	}
	for _, end := range s.left {
		errs = append(errs, end())
	}
	if s.dev != nil {
		errs = append(errs, s.dev.Close())
	}
	return errors.Join(errs...)
}

// obey does what an order says, in the only order there is.
func (s *server) obey(ctx context.Context, o Order) (a Answer, err error) {
	switch {
	case o.Hello != nil && s.dev == nil:
		s.hello = *o.Hello
		if s.dev, err = s.open(s.hello.Stack); err != nil {
			return a, err
		}
		s.mesh, err = mesh.Open(s.dev, s.hello.Listen, mesh.Config{Rank: s.hello.Rank, Size: s.hello.Size,
			Eager:   s.hello.Eager,
			Segment: s.hello.Segment, Wait: s.hello.Wait, Timeout: s.hello.Timeout})
		if err != nil {
			return a, err
		}
		return Answer{Addr: s.mesh.Addr(), Name: s.dev.Name(), Label: string(s.dev.Caps().Label), PID: os.Getpid()}, nil
	case o.Join != nil && s.mesh != nil:
		return Answer{Ready: true}, s.mesh.Join(ctx, o.Join.Addrs, o.Join.Token)
	case o.Run != nil && s.mesh != nil:
		a.Times, err = s.run(ctx, o.Run)
		return a, err
	}
	return a, fmt.Errorf("an order out of turn: %w", rdma.ErrState)
}
