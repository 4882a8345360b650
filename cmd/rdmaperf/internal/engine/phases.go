package engine

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"runtime"
	"sync"
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

// thisRun names the connections of this process, which an exclusive server serves together.
var thisRun = rand.Text()

const waitBeat = 2 * time.Second

// Waiting is whom a client waits for at an exclusive server.
type Waiting struct {
	For   string        `json:"for"` // address of the client that measures
	Since time.Duration `json:"since_ns"`
}

func (w Waiting) String() string {
	return fmt.Sprintf("%s has been measuring for %v", w.For, w.Since.Round(time.Second))
}

// turn is whose connections an exclusive server serves: runs that overlap on one machine warp each other's figures.
type turn struct {
	mu    sync.Mutex
	run   string
	host  string
	conns int
	since time.Time
	over  chan struct{} // closed when the last of conns ended
}

// take gives the turn to a run, or says who has it, and what is closed when that one's is over.
func (t *turn) take(run, host string) (w Waiting, over <-chan struct{}) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.conns == 0:
		t.run, t.host, t.since, t.over = run, host, time.Now(), make(chan struct{})
	case t.run != run:
		return Waiting{t.host, time.Since(t.since)}, t.over
	}
	t.conns++
	return w, nil
}

func (t *turn) giveBack() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.conns--; t.conns == 0 {
		close(t.over)
	}
}

// await waits until no other run is being served, and says so to the client.
func (c *ServedClient) await(run string, refuse bool) (release func(), err error) {
	t := &c.Server.turn
	host, _, _ := net.SplitHostPort(c.Ctl.peer)
	for first := true; ; first = false {
		w, over := t.take(run, host)
		switch {
		case over == nil:
			return t.giveBack, nil
		case refuse:
			return nil, PeerError("accept client", fmt.Errorf("busy: %v", w),
				"again later, the command without --no-wait, or serve --shared")
		case first:
			c.Log.Info("client waits", "for", w.For)
		}
		if err := c.say(&Message{Type: msgWait, Wait: &w}); err != nil {
			return nil, err
		}
		select {
		case <-over:
		case <-time.After(waitBeat):
		case <-c.Ctl.Alive.Done():
			return nil, c.Ctl.Alive.Err()
		}
	}
}

func (c *Client) waits(ctx context.Context, m *Message) (_ *Message, err error) {
	for first := true; err == nil && m.Type == msgWait && m.Wait != nil; first = false {
		if first && c.Plan.Log != nil {
			c.Plan.Log.Warn("the server measures for another client: waiting, Ctrl-C ends that", "for", m.Wait.For,
				"since", m.Wait.Since.Round(time.Second))
		}
		m, err = c.Ctl.receive(ctx, max(c.Plan.Timeout, 5*waitBeat))
	}
	return m, err
}
