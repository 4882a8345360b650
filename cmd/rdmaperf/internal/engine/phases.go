package engine

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"
)

// Phases plays the target until the client ends the point.
func (c *ServedClient) Phases(ctx context.Context, one func(*PhaseStart) error) error {
	for {
		limit := c.Plan.silence()
		c.Server.waitingFor(c.who, limit)
		m, err := c.Ctl.receive(ctx, limit)
		c.Server.waiting(c.who, false)
		switch {
		case err != nil:
			return PeerError("wait for a phase", err, "")
		case m.Type == MsgEnd:
			return nil
		case m.Type != MsgPhase || m.Phase == nil:
			return PeerError("wait for a phase", outOfTurn(m, MsgPhase), "")
		}
		if err := one(m.Phase); err != nil {
			return err
		}
	}
}

func (c *ServedClient) phase(ctx context.Context, group *Group, ph *PhaseStart) error {
	if err := group.Side.Prepare(ph.Generation); err != nil {
		return err
	}
	release := HoldCollector()
	defer release()
	changes := CountersAround(c.Counters, ph.Generation)
	r := group.Start(Limits{Ops: max(ph.Operations, 0)}, false) // only a server that sends looks at it
	stop, err := c.UntilStop(ctx, r)
	if err != nil {
		r.Halt(StopNow)
		r.Wait()
		return err
	}
	r.Halt(StopSoon)
	if err := c.Join(ctx, r); err != nil {
		return err
	}
	out := r.Wait()
	if out.Err != nil {
		return out.Err
	}
	rep := &PhaseReport{Operations: out.Ops, CPUSeconds: out.Usage.CPU.Seconds(), Collections: out.Usage.Collections,
		WindowNs: int64(out.Window), Lanes: group.Side.Counts(), Allocations: out.Usage.Allocations, Pinned: group.Workers[0].pinned, Procs: runtime.GOMAXPROCS(0), Sessions: int(c.Server.Clients()), Counters: changes()}
	if stop.Check {
		if err := group.Side.Verify(ph.Generation, stop.Lanes); err != nil {
			return err
		}
		rep.Verified = true
	}
	rep.Compared, rep.Noise = group.takeCompared(), &out.Noise
	return c.Ctl.Send(ReplyWait, &Message{Type: MsgReport, Report: rep})
}

// Join waits for targets that were told to stop. One that still sends needs its
// peer for the end, and a peer may be gone.
func (c *ServedClient) Join(ctx context.Context, r *Phase) error {
	limit := time.NewTimer(c.Plan.Timeout)
	defer limit.Stop()
	var err error
	select {
	case <-r.Done:
		return nil
	case <-c.Ctl.Alive.Done():
		err = PeerError("end phase", errors.New("client lost"), "")
	case <-limit.C:
		err = PeerError("end phase", errSilent, "")
	case <-ctx.Done():
		err = ctx.Err()
	}
	r.Halt(StopNow)
	r.Wait()
	return err
}

// UntilStop tells the client that the targets run and waits until it has enough.
func (c *ServedClient) UntilStop(ctx context.Context, r *Phase) (*PhaseStop, error) {
	if err := c.Ctl.Send(ReplyWait, &Message{Type: MsgReady}); err != nil {
		return nil, err
	}
	c.Server.waitingFor(c.who, c.Plan.silence())
	defer c.Server.waiting(c.who, false)
	limit := time.NewTimer(c.Plan.silence())
	defer limit.Stop()
	select {
	case m, ok := <-c.Ctl.in:
		switch {
		case !ok:
			return nil, PeerError("serve phase", fmt.Errorf("client lost: %w", c.Ctl.err), "")
		case m.Type != MsgStop || m.Stop == nil:
			return nil, PeerError("serve phase", outOfTurn(m, MsgStop), "")
		}
		return m.Stop, nil
	case <-r.Done: // only a failure ends a target by itself
		if err := r.Wait().Err; err != nil {
			return nil, err
		}
		return nil, Failed("serve phase", errors.New("the target ended by itself"))
	case <-limit.C:
		return nil, PeerError("serve phase", errSilent, "")
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}
