package rping

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// DefaultTimeout bounds every single wait unless the configuration says more.
const DefaultTimeout = 10 * time.Second

// ClientConfig is one client's run. The zero value of every field but Addr is its default.
type ClientConfig struct {
	Addr     string        // "host:port" of the server
	Size     int           // bytes a ping, MinSize..MaxSize; 0 is DefaultSize
	Count    int           // pings; 0 is without end
	Validate bool          // compare what comes back
	Busy     bool          // spin instead of sleeping
	Timeout  time.Duration // of each wait; 0 is DefaultTimeout
	// OnPing sees the bytes that came back; they are its own until it returns.
	OnPing func(data []byte)
	Log    *slog.Logger // steps at debug level; nil is silent
}

// Summary is what a client did.
type Summary struct {
	Pings   int
	Bytes   int64         // there and back counts once
	Elapsed time.Duration // from the first ping to the last
}

func (c *ClientConfig) setDefaults() error {
	if c.Size = cmp.Or(c.Size, DefaultSize); c.Size < MinSize || c.Size > MaxSize {
		return fmt.Errorf("size %d: want %d to %d bytes: %w", c.Size, MinSize, MaxSize, rdma.ErrInvalid)
	}
	if c.Count < 0 {
		return fmt.Errorf("count %d: want 0 or more: %w", c.Count, rdma.ErrInvalid)
	}
	c.Timeout, c.Log = defaults(c.Timeout, c.Log)
	return nil
}

func defaults(timeout time.Duration, log *slog.Logger) (time.Duration, *slog.Logger) {
	if timeout <= 0 {
		timeout = DefaultTimeout
	}
	return timeout, cmp.Or(log, slog.New(slog.DiscardHandler))
}

type client struct {
	*endpoint
	cfg         ClientConfig
	start, sink registration
}

// Ping connects to a server and runs cfg.Count pings. The summary is valid with an error, too: *MismatchError for
// changed data, and rdma.ErrUnreachable, rdma.ErrRejected, rdma.ErrProtocol or ErrPeerGone where the server is at
// fault.
func Ping(ctx context.Context, dev rdma.Device, cfg ClientConfig) (sum Summary, err error) {
	if err := cfg.setDefaults(); err != nil {
		return sum, err
	}
	if err := missing(dev, rdma.Ops(rdma.OpSend), cfg.Busy); err != nil {
		return sum, err
	}
	mem, err := newMemory(dev)
	if err != nil {
		return sum, err
	}
	defer func() { err = errors.Join(err, mem.close()) }()
	e, err := newEndpoint(mem, rdma.LocalWrite|rdma.RemoteRead|rdma.RemoteWrite, cfg.Timeout, cfg.Busy)
	if err != nil {
		return sum, err
	}
	defer func() { err = errors.Join(err, e.close()) }()
	c := &client{endpoint: e, cfg: cfg}
	if c.start, err = e.register(cfg.Size, rdma.RemoteRead); err != nil {
		return sum, err
	}
	if c.sink, err = e.register(cfg.Size, rdma.LocalWrite|rdma.RemoteWrite); err != nil {
		return sum, err
	}
	if err = c.connect(ctx); err != nil {
		return sum, err
	}
	began := time.Now()
	for sum.Pings = 0; cfg.Count == 0 || sum.Pings < cfg.Count; sum.Pings++ {
		// Answers that are already there keep a round from ever waiting on ctx.
		if err = ctx.Err(); err == nil {
			err = c.ping(ctx, sum.Pings)
		}
		if err != nil {
			break
		}
		sum.Bytes += int64(cfg.Size)
	}
	sum.Elapsed = time.Since(began)
	if errors.Is(err, errEnded) {
		err = fmt.Errorf("ping %d: %w: %w", sum.Pings, ErrPeerGone, err)
	}
	cfg.Log.Debug("disconnect", "pings", sum.Pings)
	if derr := e.disconnect(ctx); err == nil && derr != nil {
		err = fmt.Errorf("disconnect: %w", derr)
	}
	return sum, err
}

// connect asks for one read in each direction, as rping does.
func (c *client) connect(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	got, err := c.qp.Connect(ctx, c.cfg.Addr, rdma.ConnParam{IRD: 1, ORD: 1, RNRRetry: 7})
	if err != nil {
		return err
	}
	c.cfg.Log.Debug("connected", "addr", c.cfg.Addr, "ird", got.IRD, "ord", got.ORD)
	return nil
}

// ping runs one round. Both buffers are the server's between an advertisement and its go-ahead.
func (c *client) ping(ctx context.Context, n int) error {
	source, sink := c.start.buf.Bytes(), c.sink.buf.Bytes()
	Fill(source, n)
	if c.cfg.Validate {
		// What an earlier ping left must not pass for an answer.
		clear(sink)
	}
	for _, half := range [...]struct {
		name string
		reg  registration
	}{{"read", c.start}, {"write", c.sink}} {
		a := Advert{Addr: half.reg.buf.Addr(), RKey: half.reg.region.RKey(), Size: uint32(c.cfg.Size)}
		c.cfg.Log.Debug("advertise for "+half.name, "ping", n, "addr", a.Addr, "rkey", a.RKey, "size", a.Size)
		if err := c.send(ctx, a); err != nil {
			return err
		}
		if _, err := c.recv(ctx, "go-ahead after the "+half.name); err != nil {
			return err
		}
	}
	if c.cfg.Validate && !bytes.Equal(source, sink) {
		return mismatch(n, sink, source)
	}
	if c.cfg.OnPing != nil {
		c.cfg.OnPing(sink)
	}
	return nil
}

func mismatch(ping int, got, want []byte) error {
	e := &MismatchError{Ping: ping, Size: len(want)}
	for i := range want {
		if got[i] == want[i] {
			continue
		}
		if e.Wrong++; e.Wrong == 1 {
			e.Offset, e.Got, e.Want = i, got[i], want[i]
		}
	}
	return e
}

func missing(dev rdma.Device, ops rdma.OpSet, busy bool) error {
	caps, need := dev.Caps(), rdma.Need{Ops: ops, SGE: 1, Msg: MaxSize}
	if !busy {
		need.Features = rdma.FeatEvents
	}
	return caps.Missing(need)
}
