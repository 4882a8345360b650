package engine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"time"

	"github.com/rdmaperf/rdmaperf/reports"
)

// Ready is the server's answer to a phase: its targets run.
type Ready struct{ Generation int }

// Phases plays the target until the client ends the point.
func (s *Serve) Phases(ctx context.Context, one func(*PhaseStart) error) error {
	limit := s.Plan.silence()
	for {
		var ph PhaseStart
		s.client.Server.seen(s.client.who, time.Now().Add(limit))
		err := s.Peer.within(ctx, limit, &ph)
		s.client.Server.seen(s.client.who, time.Time{})
		switch {
		case err == io.EOF:
			return nil
		case err != nil:
			return err
		}
		if err := one(&ph); err != nil {
			return err
		}
	}
}

func (s *Serve) phase(ctx context.Context, group *Group, ph *PhaseStart) error {
	if err := group.Side.Prepare(ph.Generation); err != nil {
		return err
	}
	defer ReserveProcs(len(group.Workers))()
	defer HoldCollector()()
	changes := s.Counters(ph)
	r := group.Start(Limits{Ops: max(ph.Operations, 0)}, false) // only a server that sends uses it
	stop, err := s.UntilStop(ctx, ph, r)
	if err != nil {
		r.Halt(StopNow)
		r.Wait()
		return err
	}
	r.Halt(StopSoon)
	if err := s.Join(ctx, r); err != nil {
		return err
	}
	out := r.Wait()
	if out.Err != nil {
		return out.Err
	}
	rep := PhaseReport{WindowNs: int64(out.Window), Lanes: group.Side.Counts(), Pinned: group.Workers[0].pinned,
		Counters: changes()}
	if out.Peak.Exact() {
		t := reports.NewThroughput(out.Ops*int64(group.Sh.Size), out.Ops, out.Window)
		out.Peak.Report(t, group.Sh.Size, group.Sh.Depth*group.Sh.QPs)
		rep.PeakBps = t.PeakBytesPerSecond
	}
	if stop.Check {
		if err := group.Side.Verify(ph.Generation, stop.Lanes); err != nil {
			return err
		}
		rep.Verified = true
	}
	rep.Compared, rep.Noise = group.takeCompared(), &out.Noise
	return s.Report(out, rep)
}

// Counters reads what is counted below the stack: see [CountersAround].
func (s *Serve) Counters(ph *PhaseStart) (changes func() []reports.DeviceCounters) {
	return CountersAround(s.client.Counters, ph.Generation)
}

// Report ends a phase: it sends rep with what every outcome has.
func (s *Serve) Report(out *Outcome, rep PhaseReport) error {
	u := out.Usage
	rep.Operations, rep.CPUSeconds, rep.Switches = out.Ops, u.CPU.Seconds(), u.switches
	rep.Collections, rep.Allocations = u.Collections, u.Allocations
	rep.Procs, rep.Sessions = runtime.GOMAXPROCS(0), s.client.Server.Clients()
	return s.Peer.Send(&rep)
}

// Join waits for targets that were stopped. One that still sends needs its peer for the end, and a peer may be gone.
func (s *Serve) Join(ctx context.Context, r *Phase) error {
	limit := time.NewTimer(s.Plan.Timeout)
	defer limit.Stop()
	var err error
	select {
	case <-r.Done:
		return nil
	case <-limit.C:
		err = PeerError("end phase", errSilent, "")
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	r.Halt(StopNow)
	r.Wait()
	return err
}

// UntilStop reports to the client that the targets run and waits until it has enough.
func (s *Serve) UntilStop(ctx context.Context, ph *PhaseStart, r *Phase) (*PhaseStop, error) {
	if err := s.Peer.Send(Ready{ph.Generation}); err != nil {
		return nil, err
	}
	s.client.Server.seen(s.client.who, time.Now().Add(s.Plan.silence()))
	defer s.client.Server.seen(s.client.who, time.Time{})
	limit := time.NewTimer(s.Plan.silence())
	defer limit.Stop()
	select {
	case m, ok := <-s.Peer.ctl.in:
		if !ok {
			return nil, PeerError("serve phase", fmt.Errorf("client lost: %w", s.Peer.ctl.err), "")
		}
		stop := new(PhaseStop)
		err := s.Peer.take(m, stop)
		if err == io.EOF {
			err = PeerError("serve phase", outOfTurn(m, msgData), "")
		}
		return stop, err
	case <-r.Done: // only a failure ends a target by itself
		if err := r.Wait().Err; err != nil {
			return nil, err
		}
		return nil, Failed("serve phase", errors.New("the target ended by itself"))
	case <-limit.C:
		return nil, PeerError("serve phase", errSilent, "")
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}
