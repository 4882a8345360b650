package suite

import (
	"errors"
	"time"

	"github.com/rdmaperf/rdmaperf/softstack/wiretest/target"
)

type peer struct {
	addr     string
	limit    time.Duration
	isTarget bool           // and not a server of rping
	hello    target.Hello   // of a test target
	client   *target.Client // nil until it is needed
}

// silence is how long a test target may take to greet. Whoever listens for iWARP says
// nothing, so every other peer costs this once.
const silence = 500 * time.Millisecond

func meet(addr string, limit time.Duration) (*peer, error) {
	p := &peer{addr: addr, limit: limit}
	for _, wait := range []time.Duration{silence, limit} {
		v, err := target.Find(addr, wait, limit)
		if err != nil && !errors.Is(err, target.ErrSilent) {
			return p, err
		}
		if v != nil {
			p.isTarget, p.client, p.hello = true, v, v.Hello
		}
		// A slow target took the probe for rubbish, so it is greeted once more.
		if err = p.trial(limit).guard(func(t *trial) { t.connect() }); err == nil || p.isTarget {
			return p, err
		}
		if wait == limit {
			return p, err
		}
	}
	return p, nil
}

func (p *peer) name() string {
	if p.isTarget {
		return "wire:" + p.hello.Transport + "@" + p.addr
	}
	return "wire:" + p.addr
}

func (p *peer) trial(limit time.Duration) *trial {
	t := &trial{addr: p.addr, limit: limit}
	if !p.isTarget {
		return t
	}
	if p.client == nil {
		v, err := target.Find(p.addr, limit, limit)
		if err != nil {
			t.gone = err
			return t
		}
		p.client = v
	}
	t.target, t.variants = p.client, p.hello.Variants
	return t
}

func (p *peer) leave() {
	if p.client != nil {
		p.client.Close()
		p.client = nil
	}
}
