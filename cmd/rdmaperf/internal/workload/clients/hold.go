package clients

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/pairs"
	"github.com/rdmaperf/rdmaperf/transports"
	"github.com/rdmaperf/rdmaperf/transports/lite"
	"github.com/rdmaperf/rdmaperf/transports/lite/stack"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

const (
	port = 1
	// nodeArena is what a node of LITE needs for itself, and peerArena for each other node,
	// bytes, with room to spare.
	nodeArena, peerArena = 8 << 20, 1 << 20
	// messageTime bounds the wait for one message.
	messageTime = 20 * time.Second
)

// holdRings is a node that serves a port to nodes of their own.
func holdRings(ctx context.Context, r *engine.Run, n int) (h held, err error) {
	s := r.Stack.(*stack.Stack)
	var closers []func() error
	defer func() {
		for i := len(closers) - 1; i >= 0; i-- {
			err = errors.Join(err, closers[i]())
		}
	}()
	dev, err := r.Open.Device(pairs.Below(r.Plan.Transport))
	if err != nil {
		return h, err
	}
	closers = append(closers, dev.Close)
	size := r.Point.Size
	cfg := s.NodeConfig()
	open := func(manager string, arena int) (*lite.Node, error) {
		c := cfg
		c.Arena, c.Listen, c.Manager = nodeArena+n*peerArena+arena, pairs.ListenAt(dev), manager
		node, err := lite.Open(ctx, dev, c)
		if err == nil {
			closers = append(closers, node.Close)
		}
		return node, err
	}
	server, err := open("", n*(4*size+2<<20))
	if err != nil {
		return h, err
	}
	var got arrivals
	if _, err = server.Serve(port, lite.PortConfig{MaxRequest: size, Handle: func(q *lite.Request) {
		got.take(q.Payload, size, n)
		_ = q.Reply(nil) // a client that is gone needs none
	}}); err != nil {
		return h, err
	}
	before := server.Left()
	for i := range n {
		node, err := open(server.Addr(), 2*size)
		if err != nil {
			return h, err
		}
		c, err := node.Client(lite.ClientConfig{Timeout: messageTime})
		if err != nil {
			return h, err
		}
		b, err := c.Alloc(size)
		if err != nil {
			return h, err
		}
		message(b, i)
		if _, err := c.Call(server.ID(), port, b); err != nil {
			return h, err
		}
	}
	h.bytes, h.queuePairs, h.messages = before-server.Left(), server.Counts().Links, got.count()
	return h, nil
}

// counter answers calls and counts those that came whole.
type counter struct {
	size, clients int
	got           arrivals
}

func (k *counter) ServeCall(s *transports.Served) error {
	k.got.take(s.Request.AppendTo(nil), k.size, k.clients)
	s.Response = []byte{1}
	return nil
}

// holdCalls is a server of calls with a connection for each client.
func holdCalls(ctx context.Context, r *engine.Run, n int) (h held, err error) {
	opened, err := r.Open.Stack(r.Plan.Transport)
	if err != nil {
		return h, err
	}
	defer func() { err = errors.Join(err, opened.Close()) }()
	server, err := engine.CallsOf(opened)
	if err != nil {
		return h, err
	}
	dialler, err := engine.CallsOf(r.Stack)
	if err != nil {
		return h, err
	}
	k := &counter{size: r.Point.Size, clients: n}
	cfg := transports.CallConfig{MaxRequest: k.size, MaxResponse: 1, Callers: receives, Conns: n}
	srv, err := server.ListenCalls(ctx, "127.0.0.1:0", cfg, k)
	if err != nil {
		return h, engine.TransportError("listen for calls", err)
	}
	defer func() { err = errors.Join(err, srv.Close()) }()
	b := make([]byte, k.size)
	for i := range n {
		message(b, i)
		conn, err := dialler.DialCalls(ctx, srv.Addr(), cfg)
		if err != nil {
			return h, engine.TransportError("dial", err)
		}
		defer conn.Close()
		c, err := conn.Caller(ctx, transports.CallerConfig{Timeout: messageTime})
		if err != nil {
			return h, engine.TransportError("make a caller", err)
		}
		defer c.Close()
		if err := c.Call(&transports.Call{Request: b}); err != nil {
			return h, engine.TransportError("call", err)
		}
	}
	h.bytes, h.queuePairs, h.messages = n*server.CallCost().Registered, n, k.got.count()
	return h, nil
}

// holdNative is a queue pair for each client, with receives of the longest message.
func holdNative(ctx context.Context, r *engine.Run, n int) (h held, err error) {
	size := r.Point.Size
	p, err := pairs.OpenReceiving(ctx, r, n, 1, receives)
	if err != nil {
		return h, err
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	var bufs [2]rdma.Buffer // the clients', the server's
	var mrs [2]rdma.MR
	for i, bytes := range []int{size, n * receives * size} {
		if bufs[i], err = rdma.Alloc(bytes); err != nil {
			return h, err
		}
		defer func() { err = errors.Join(err, bufs[i].Free()) }()
		if mrs[i], err = p.Devs[i].RegMR(0, bufs[i], rdma.LocalWrite); err != nil {
			return h, err
		}
		defer func() { err = errors.Join(err, mrs[i].Close()) }()
	}
	defer func() { err = errors.Join(err, p.Disconnect()) }() // nobody touches the memory then
	var wcs [receives]rdma.WC
	var got arrivals
	for c, q := range p.QPs[1] {
		var wrs [receives]rdma.RecvWR
		for i := range wrs {
			wrs[i] = rdma.RecvWR{ID: uint64(c*receives + i), NumSGE: 1}
			wrs[i].SGE[0] = rdma.SGE{Addr: bufs[1].Addr() + uint64((c*receives+i)*size), Len: uint32(size),
				LKey: mrs[1].LKey()}
		}
		if k, err := q.PostRecv(wrs[:]); err != nil || k < receives {
			return h, errors.Join(err, fmt.Errorf("%d of %d receives posted", k, receives))
		}
	}
	for c, q := range p.QPs[0] {
		message(bufs[0].Bytes(), c)
		wr := rdma.SendWR{ID: 1, Op: rdma.OpSend, Flags: rdma.Signaled, NumSGE: 1}
		wr.SGE[0] = rdma.SGE{Addr: bufs[0].Addr(), Len: uint32(size), LKey: mrs[0].LKey()}
		if _, err := q.PostSend([]rdma.SendWR{wr}); err != nil {
			return h, err
		}
		sent, came := false, false
		for end := time.Now().Add(messageTime); !sent || !came; {
			for i := range p.CQs {
				k, err := p.CQs[i].Poll(wcs[:])
				if err != nil {
					return h, err
				}
				for _, wc := range wcs[:k] {
					if wc.Status != rdma.StatusSuccess {
						return h, &rdma.StatusError{WC: wc}
					}
					if i == 0 {
						sent = true
						continue
					}
					came = true
					got.take(bufs[1].Bytes()[int(wc.ID)*size:][:wc.ByteLen], size, n)
				}
			}
			if time.Now().After(end) {
				return h, late
			}
		}
	}
	h.bytes, h.queuePairs, h.messages = bufs[1].Len(), n, got.count()
	return h, nil
}
