package engine

import (
	"context"
	"crypto/rand"
	"fmt"
	"net"
	"sync"
	"time"
)

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
