package impair

import (
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"sync/atomic"
	"time"
)

// Config is what becomes of packets, each way, by probabilities from 0 to 1. Loss of 1 cuts the path.
type Config struct {
	Loss, Duplicate, Reorder float64
	Delay                    time.Duration
	Seed                     uint64
}

type Counts struct {
	Packets, Lost, Duplicated, Reordered uint64
}

type proxy struct {
	cfg  atomic.Pointer[Config]
	rng  *rand.Rand
	held []byte // is overtaken by the next packet

	packets, lost, duplicated, reordered atomic.Uint64
}

func newProxy(c Config, way uint64) *proxy {
	x := &proxy{rng: rand.New(rand.NewPCG(c.Seed, way))}
	x.set(c)
	return x
}

// set takes effect with the next packet. Whether packets are delayed is fixed from the start.
func (x *proxy) set(c Config) { x.cfg.Store(&c) }

// pass gives in order what leaves for one packet that came, valid until the next call.
func (x *proxy) pass(p []byte) (out [3][]byte, n int) {
	x.packets.Add(1)
	cfg := x.cfg.Load()
	if x.chance(cfg.Loss) {
		x.lost.Add(1)
		return out, 0
	}
	if x.held == nil && x.chance(cfg.Reorder) {
		x.held = append([]byte(nil), p...)
		x.reordered.Add(1)
		return out, 0
	}
	out[0], n = p, 1
	if x.chance(cfg.Duplicate) {
		x.duplicated.Add(1)
		out[n] = p
		n++
	}
	if x.held != nil {
		out[n], x.held = x.held, nil
		n++
	}
	return out, n
}

func (x *proxy) chance(p float64) bool { return p > 0 && x.rng.Float64() < p }

type late struct {
	due time.Time
	b   []byte
}

func (x *proxy) run(from io.Reader, to io.Writer) error {
	var queue chan late
	delay := x.cfg.Load().Delay
	if delay > 0 {
		queue = make(chan late, 1<<14) // more is dropped, as by a path that is full
		done := make(chan struct{})
		defer func() { close(queue); <-done }()
		go func() {
			defer close(done)
			for l := range queue {
				time.Sleep(time.Until(l.due))
				to.Write(l.b) // a full device drops, as an interface does
			}
		}()
	}
	buf := make([]byte, 1<<16)
	for {
		n, err := from.Read(buf)
		if err != nil {
			if errors.Is(err, os.ErrClosed) {
				return nil
			}
			return err
		}
		out, k := x.pass(buf[:n])
		for _, b := range out[:k] {
			if queue == nil {
				to.Write(b)
				continue
			}
			select {
			case queue <- late{time.Now().Add(delay), append([]byte(nil), b...)}:
			default:
				x.lost.Add(1)
			}
		}
	}
}
