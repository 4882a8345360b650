package fused

import (
	"fmt"
	"sync"
	"time"
)

const (
	defaultPingLimit = 20 * time.Second
	// silentLooks is how often to check for traffic within PingTime. Arbitrary: silence is a fourth too long at most.
	silentLooks = 4
	// answerLooks is how often it checks for the answer within PingTimeout, and an idle client for pings. Arbitrary.
	answerLooks = 20
)

// ping asks the peer whenever it is silent (gRFC A8, A9), while wanted, until over is closed or the session ends. rouse
// is called when an answer is due.
func (s *session) ping(over <-chan struct{}, wanted func() bool, rouse func()) {
	t := time.NewTimer(0)
	defer t.Stop()
	pause := func(d time.Duration) bool {
		t.Reset(max(d, time.Millisecond))
		select {
		case <-t.C:
			return true
		case <-over:
		case <-s.done:
		}
		return false
	}
	last, silent := s.received.Load(), 0
	for pause(s.pingTime / silentLooks) {
		if now := s.received.Load(); now != last {
			last, silent = now, 0
			continue
		}
		if silent++; silent < silentLooks || !wanted() {
			continue
		}
		s.pinged.Store(true)
		if s.send(kindPing, 0, 0, nil, 0, nil) != nil {
			return
		}
		rouse()
		for look := 0; s.received.Load() == last; look++ {
			if look == answerLooks {
				s.fail(fmt.Errorf("keepalive: the peer is silent for %v and has not answered a ping within %v",
					s.pingTime, s.pingLimit))
				return
			}
			if !pause(s.pingLimit / answerLooks) {
				return
			}
		}
		s.pinged.Store(false)
		last, silent = s.received.Load(), 0
	}
}

func (ss *serverSession) watchIdle(most time.Duration, over <-chan struct{}) {
	t := time.NewTimer(most)
	defer t.Stop()
	for {
		select {
		case <-t.C:
		case <-over:
			return
		}
		ss.callsMu.Lock()
		wait := most
		if len(ss.calls) == 0 {
			wait -= time.Since(ss.idleSince)
		}
		ss.callsMu.Unlock()
		if wait <= 0 {
			ss.drain()
			return
		}
		t.Reset(wait)
	}
}

// empty is an error for a frame that carries what its kind may not.
func (f *frame) empty() error {
	if len(f.data) > 0 || f.stream != 0 {
		return fmt.Errorf("%w: kind %d with %d bytes", errFrame, f.kind, len(f.data))
	}
	return nil
}

// tend starts the timers of a server's connection; stop ends and joins them.
func (ss *serverSession) tend() (stop func()) {
	cfg := &ss.srv.cfg
	over := make(chan struct{})
	var wg sync.WaitGroup
	if cfg.MaxConnectionAge > 0 {
		wg.Go(func() { ss.age(over) })
	}
	if cfg.MaxConnectionIdle > 0 {
		ss.callsMu.Lock()
		ss.idleSince = time.Now()
		ss.callsMu.Unlock()
		wg.Go(func() { ss.watchIdle(cfg.MaxConnectionIdle, over) })
	}
	if ss.pingTime > 0 {
		wg.Go(func() { ss.ping(over, func() bool { return true }, func() {}) })
	}
	return func() { close(over); wg.Wait() }
}
