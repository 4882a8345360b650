package suite

import (
	"errors"
	"time"

	"github.com/rdmaperf/rdmaperf/softstack/wiretest/victim"
)

// peer is whoever is under test.
type peer struct {
	addr   string
	limit  time.Duration
	told   bool           // it is a victim
	hello  victim.Hello   // of a victim
	client *victim.Client // nil until it is needed
}

// silence is how long a victim may take to greet. Whoever listens for iWARP says
// nothing, so every other peer costs this once. Arbitrary.
const silence = 500 * time.Millisecond

// meet finds out who is there. Who does not answer a right Request cannot be asked
// anything.
func meet(addr string, limit time.Duration) (*peer, error) {
	p := &peer{addr: addr, limit: limit}
	for _, wait := range []time.Duration{silence, limit} {
		v, err := victim.Find(addr, wait, limit)
		if err != nil && !errors.Is(err, victim.ErrSilent) {
			return p, err
		}
		if v != nil {
			p.told, p.client, p.hello = true, v, v.Hello
		}
		// A slow victim took the probe for rubbish, so it is greeted once more.
		if err = p.trial(limit).guard(func(t *trial) { t.connect() }); err == nil || p.told {
			return p, err
		}
		if wait == limit {
			return p, err
		}
	}
	return p, nil
}

// name is the transport of the report.
func (p *peer) name() string {
	if p.told {
		return "wire:" + p.hello.Transport + "@" + p.addr
	}
	return "wire:" + p.addr
}

// trial is a fresh case. A victim whose control connection ended is met again.
func (p *peer) trial(limit time.Duration) *trial {
	t := &trial{addr: p.addr, limit: limit}
	if !p.told {
		return t
	}
	if p.client == nil {
		v, err := victim.Find(p.addr, limit, limit)
		if err != nil {
			t.gone = err
			return t
		}
		p.client = v
	}
	t.victim, t.variants = p.client, p.hello.Variants
	return t
}

// leave ends the control connection.
func (p *peer) leave() {
	if p.client != nil {
		p.client.Close()
		p.client = nil
	}
}
