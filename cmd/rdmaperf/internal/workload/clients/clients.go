// Package clients is the workload of a server's memory by the number of its clients, all in this process. It counts
// rings of LITE, receives of the longest message for each queue pair, or what a connection of calls registers. Only
// registered memory is counted: what a driver or a NIC keeps is not known to a library.
package clients

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/spf13/pflag"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/curves"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/drive"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/pairs"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/values"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload"
	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/transports"
	"github.com/rdmaperf/rdmaperf/transports/lite"
	"github.com/rdmaperf/rdmaperf/transports/lite/peerrpc"
	"github.com/rdmaperf/rdmaperf/transports/lite/stack"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

const Name = "clients"

const (
	op          = "count"
	mostClients = lite.MaxNodes - 1
	// receives of a queue pair, and calls under way. Arbitrary: a quarter of LITE's RECV_DEPTH (lite.h).
	receives  = 64
	mostBytes = 1 << 30
)

var set = curves.Results(reports.Workload{
	Name: Name, Title: "Clients",
	Intro: "What a server has registered when each of its clients has sent one message. LITE has a ring for each " +
		"client machine, whatever its messages; a device alone has a queue pair for each, with 64 receives of the " +
		"longest message; other stacks have what a connection with 64 calls registers. Size is that of the longest " +
		"message; memory is what the server registers.",
	Dims: []reports.DimDef{{Name: "clients", Help: "of one server"}},
	Figures: []reports.FigureDef{
		{Name: "server_bytes", Quantity: reports.QuantityMemory, Help: "Registered memory of the server"},
		{Name: "client_bytes", Quantity: reports.QuantityMemory, Help: "each"},
		{Name: "server_queue_pairs", Quantity: reports.QuantityCount, Help: "Queue pairs of the server"},
	},
}, "64 messages under way for each client, all clients in one process",
	map[string]reports.DimDef{op: {Name: "clients"}})

type options struct{ Clients int }

func (o *options) check(size int) error {
	switch {
	case o.Clients < 1 || o.Clients > mostClients:
		return fmt.Errorf("%d clients: want 1 to %d", o.Clients, mostClients)
	case size < 1 || int64(size)*receives*int64(o.Clients) > mostBytes:
		return fmt.Errorf("%d clients with messages of %d bytes: %d receives of each are more than %s", o.Clients, size,
			receives, reports.SizeLabel(mostBytes))
	}
	return nil
}

type Workload struct {
	engine.ClientOnly
	machines string
}

func (*Workload) Meta() workload.Meta {
	return workload.Meta{
		Name:       Name,
		Results:    set,
		Summary:    "memory that a server registers, by its number of clients",
		Examples:   "rdmaperf run --transport 'iwarp,lite+iwarp,grpc(fused)+iwarp' --workload clients",
		Group:      "Workload clients",
		OwnThreads: true,
		Over:       over,
		Sizes:      []int{4096, 65536},
	}
}

// over takes stacks that say what a connection registers, and that have as many as the point has clients.
func over(s transports.Stack, pt engine.Point) error {
	refuse := func(hint, format string, a ...any) error {
		return &reports.ExitError{Code: reports.ExitNotRun, Err: fmt.Errorf(format, a...), Hint: hint}
	}
	switch s := s.(type) {
	case *stack.Stack:
		return nil
	case *peerrpc.Stack: // it says so once it has a connection
	case transports.CallTransport:
		if s.CallCost().Registered == 0 {
			return refuse("--transport iwarp,lite+iwarp", "it does not say what a connection registers")
		}
	default:
		return pairs.NoDevice(s, pt)
	}
	o, err := engine.ReadOptions(pt, (*options).check)
	if most := s.Caps().MaxConns; err == nil && most > 0 && most < o.Clients {
		return refuse(fmt.Sprint("--machines ", most), "it takes %d clients", most)
	}
	return err
}

func (f *Workload) Flags(s *pflag.FlagSet) {
	values.ListVar(s, &f.machines, "machines", "1,2,4,8,16", "clients: how many, a comma list or FROM:TO:STEP")
}

func (f *Workload) Points(c *workload.Common) (points []engine.Point, err error) {
	if s := c.AnyOf("op", "qp", "qp-sweep", "threads", "polling", "duration", "iters"); s != "" && c.Alone() {
		return nil, values.Wrong(s, "the workload clients measures memory, not time; see --machines")
	}
	list, err := values.Counts("machines", f.machines)
	if err != nil {
		return nil, err
	}
	for _, size := range c.SizesOf("", f.Meta().Sizes) {
		for _, n := range list {
			o := options{n}
			if err := o.check(size); err != nil {
				return nil, values.Wrong("machines", "%v", err)
			}
			points = append(points, engine.Point{Workload: Name, Alone: true, Op: op, Size: size,
				Words: fmt.Sprintf("clients: %d, messages of %d B", n, size), Options: engine.PackOptions(o)})
		}
	}
	return points, nil
}

type held struct {
	bytes, queuePairs int
	messages          int64 // that arrived as they were sent
}

func (*Workload) Client(ctx context.Context, r *engine.Run) error {
	o, err := engine.ReadOptions(r.Point, (*options).check)
	if err != nil {
		return err
	}
	hold := holdNative
	switch r.Stack.(type) {
	case *stack.Stack:
		hold = holdRings
	case transports.CallTransport:
		hold = holdCalls
	}
	h, err := hold(ctx, r, o.Clients)
	if err != nil {
		return err
	}
	if h.messages != int64(o.Clients) {
		return engine.Corrupted(fmt.Errorf("%v: %d of %d messages arrived as they were sent", r.Point, h.messages,
			o.Clients))
	}
	res := r.Result()
	res.Polling, res.Verified, res.Operations, res.Depth, res.QPs = "", true, h.messages, receives, h.queuePairs
	res.Verification = drive.AllCompared(h.messages, h.messages*int64(r.Point.Size))
	res.Parameters["clients"] = o.Clients
	res.Detail = &curves.Point{X: float64(o.Clients), Values: map[string]float64{"server_bytes": float64(h.bytes),
		"client_bytes": float64(h.bytes) / float64(o.Clients), "server_queue_pairs": float64(h.queuePairs)}}
	r.Add(res)
	return nil
}

func message(b []byte, client int) {
	drive.FillSender(b, 0)
	drive.PutNumber(b, uint64(client))
}

type arrivals struct {
	size int
	mu   sync.Mutex
	seen []bool // by client
}

// take counts a message for its client, unless it changed or comes again.
func (a *arrivals) take(b []byte) {
	want := make([]byte, a.size)
	a.mu.Lock()
	defer a.mu.Unlock()
	for c := range a.seen {
		if message(want, c); bytes.Equal(b, want) {
			a.seen[c] = true
			return
		}
	}
}

func (a *arrivals) count() (n int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, seen := range a.seen {
		if seen {
			n++
		}
	}
	return n
}

func (a *arrivals) ServeCall(s *transports.Served) error {
	a.take(s.Request.AppendTo(nil))
	s.Response = []byte{1}
	return nil
}

const (
	port = 1
	// nodeArena is what a node of LITE needs for itself, peerArena for each other node: bytes, generously.
	nodeArena, peerArena = 8 << 20, 1 << 20
	messageTime          = 20 * time.Second
)

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
	got := &arrivals{size: size, seen: make([]bool, n)}
	if _, err = server.Serve(port, lite.PortConfig{MaxRequest: size, Handle: func(q *lite.Request) {
		got.take(q.Payload)
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
	got := &arrivals{size: r.Point.Size, seen: make([]bool, n)}
	cfg := transports.CallConfig{MaxRequest: got.size, MaxResponse: 1, Callers: receives, Conns: n}
	srv, err := server.ListenCalls(ctx, "127.0.0.1:0", cfg, got)
	if err != nil {
		return h, engine.TransportError("listen for calls", err)
	}
	defer func() { err = errors.Join(err, srv.Close()) }()
	b := make([]byte, got.size)
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
	h.bytes, h.queuePairs, h.messages = n*server.CallCost().Registered, n, got.count()
	return h, nil
}

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
	got := &arrivals{size: size, seen: make([]bool, n)}
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
					got.take(bufs[1].Bytes()[int(wc.ID)*size:][:wc.ByteLen])
				}
			}
			if time.Now().After(end) {
				return h, errors.New("a client's message did not come")
			}
		}
	}
	h.bytes, h.queuePairs, h.messages = bufs[1].Len(), n, got.count()
	return h, nil
}
