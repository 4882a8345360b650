package tcp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/rdmaperf/rdmaperf/transports"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
	"github.com/rdmaperf/rdmaperf/transports/stream"
)

const (
	maxWindow    = 1<<offsetBits - 1 // bytes
	maxMsg       = 1 << 30           // bytes; a length fits int everywhere
	maxDepth     = 16 << 10
	maxReadDepth = 256
	maxInline    = copyMax

	// connectTimeout bounds Dial without a deadline of its own, as
	// [rdma.QP].Connect does; greetTimeout a peer that connected and stays silent.
	connectTimeout = 10 * time.Second
	greetTimeout   = 5 * time.Second

	// localBuffer is the send buffer over the loopback device: within the L2 cache it is 1.2 times as fast.
	localBuffer = 512 << 10
)

// Config sets the buffers in bytes, where 0 leaves the kernel's autotuning on, and the stack below.
type Config struct {
	SendBuffer int
	RecvBuffer int
	// LocalBuffer is the send buffer over the loopback device where SendBuffer is 0, as far as
	// net.core.wmem_max allows it; 0 means 512 KiB, and less than 0 leaves it to the kernel.
	LocalBuffer int
	Stack       stream.Stack // nil means kernel sockets
}

type transport struct {
	cfg    Config
	stack  stream.Stack
	closed atomic.Bool
}

// New makes the transport. It holds nothing: sessions and listeners are closed by those who got them.
func New(cfg Config) transports.Transport {
	t := &transport{cfg: cfg, stack: cfg.Stack}
	if t.stack == nil {
		t.stack = stream.Kernel
	}
	return t
}

// Name is tcp, with the socket buffers when they are set.
func (t *transport) Name() string {
	var p []string
	if t.cfg.SendBuffer > 0 {
		p = append(p, fmt.Sprintf("sndbuf=%d", t.cfg.SendBuffer))
	}
	if t.cfg.RecvBuffer > 0 {
		p = append(p, fmt.Sprintf("rcvbuf=%d", t.cfg.RecvBuffer))
	}
	if t.cfg.LocalBuffer != 0 {
		p = append(p, fmt.Sprintf("local=%d", max(0, t.cfg.LocalBuffer)))
	}
	if n := t.stack.Name(); n != "" {
		p = append(p, n)
	}
	if p == nil {
		return "tcp"
	}
	return "tcp(" + strings.Join(p, ",") + ")"
}

// Caps are constant.
func (t *transport) Caps() transports.Caps {
	return transports.Caps{
		Label: rdma.LabelSoft,
		Kinds: transports.Kinds(transports.KindSend, transports.KindWrite, transports.KindWriteImm,
			transports.KindRead, transports.KindRecv),
		LastByteLast:  true,
		Events:        true,
		MaxMsg:        maxMsg,
		MaxInline:     maxInline,
		MaxDepth:      maxDepth,
		MaxReadDepth:  maxReadDepth,
		LocalComplete: true,
	}
}

// Close refuses further Dial and Listen.
func (t *transport) Close() error {
	t.closed.Store(true)
	return nil
}

// Dial connects within ctx or 10 s: rdma.ErrInvalid, ErrUnreachable, ErrRejected, ErrProtocol.
func (t *transport) Dial(ctx context.Context, addr string, hello []byte, cfg transports.Config) (transports.Session,
	error) {
	s, err := t.dial(ctx, addr, hello, cfg)
	if err != nil {
		return nil, &rdma.OpError{Op: "connect", Object: addr, Err: err}
	}
	return s, nil
}

func (t *transport) dial(ctx context.Context, addr string, hello []byte, cfg transports.Config) (*session, error) {
	if t.closed.Load() {
		return nil, rdma.ErrClosed
	}
	cfg, err := cfg.Within(t.Caps(), maxWindow, 1)
	if err != nil {
		return nil, err
	}
	ask := greeting{version: wireVersion, verdict: verdictAsk, window: uint64(cfg.Window),
		readDepth: uint32(cfg.ReadDepth), hello: hello}
	msg, err := ask.encode()
	if err != nil {
		return nil, err
	}
	buf, err := rdma.Alloc(cfg.Window)
	if err != nil {
		return nil, err
	}
	if cfg.Created != nil {
		cfg.Created()
	}
	ctx, cancel := context.WithTimeout(ctx, connectTimeout) // the earlier deadline wins
	defer cancel()
	conn, err := t.stack.Dial(ctx, addr, t.cfg.buffers())
	if err != nil {
		buf.Free()
		return nil, unreachable(err)
	}
	peer, err := exchange(ctx, conn, msg[:])
	if err != nil {
		conn.Close()
		buf.Free()
		return nil, err
	}
	return t.newSession(conn, cfg, &peer, buf)
}

func exchange(ctx context.Context, conn stream.Opening, msg []byte) (greeting, error) {
	leave := after(ctx, func() { conn.SetDeadline(time.Unix(1, 0)) })
	defer leave()
	var b [greetingLen]byte
	_, err := conn.Write(msg)
	if err == nil {
		_, err = io.ReadFull(conn, b[:])
	}
	if err != nil {
		if ctx.Err() != nil {
			return greeting{}, unreachable(ctx.Err())
		}
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET) {
			return greeting{}, fmt.Errorf("%w: closed during the greeting", rdma.ErrRejected)
		}
		return greeting{}, unreachable(err)
	}
	g, err := parseGreeting(&b)
	if err != nil {
		return g, err
	}
	switch g.verdict {
	case verdictTake:
		return g, nil
	case verdictRefuse:
		return g, rdma.ErrRejected
	}
	return g, fmt.Errorf("%w: %w", rdma.ErrProtocol, errGreeting)
}

// open makes the session of a greeted connection and owns conn in any case.
func (t *transport) open(conn stream.Opening, cfg transports.Config, peer *greeting) (*session, error) {
	buf, err := rdma.Alloc(cfg.Window)
	if err != nil {
		conn.Close()
		return nil, err
	}
	return t.newSession(conn, cfg, peer, buf)
}

func (c *Config) buffers() stream.Buffers {
	return stream.Buffers{Send: c.SendBuffer, Recv: c.RecvBuffer, LocalSend: max(0, cmp.Or(c.LocalBuffer, localBuffer))}
}

func unreachable(err error) error { return fmt.Errorf("%w: %w", rdma.ErrUnreachable, err) }
