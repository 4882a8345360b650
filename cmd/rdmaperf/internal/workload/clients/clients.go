package clients

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

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
)

// Name is the workload's.
const Name = "clients"

const (
	op = "count"
	// mostClients leave the server its place in a cluster.
	mostClients = lite.MaxNodes - 1
	// receives of a queue pair, and calls that a client may have under way. Arbitrary: a
	// quarter of LITE's RECV_DEPTH (lite.h).
	receives = 64
	// mostBytes bounds what a server registers.
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

func (o *options) words(size int) string {
	return fmt.Sprintf("clients: %d, messages of %d B", o.Clients, size)
}

// Workload implements workload.Workload.
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
			points = append(points, engine.Point{Workload: Name, Alone: true, Op: op, Size: size, Words: o.words(size),
				Options: engine.PackOptions(o)})
		}
	}
	return points, nil
}

// held is what a server holds for its clients.
type held struct {
	bytes, queuePairs int
	messages          int64 // that arrived as they were sent
}

// Client measures one point.
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

// message is that of a client, whose number is the message's.
func message(b []byte, client int) {
	drive.FillSender(b, 0)
	drive.PutNumber(b, uint64(client))
}

// arrivals are the clients whose messages arrived as they were sent.
type arrivals struct {
	mu   sync.Mutex
	seen map[int]bool
}

// take is a message that arrived from one of so many clients. One that changed, or comes
// again, counts for nobody.
func (a *arrivals) take(b []byte, size, clients int) {
	if len(b) != size {
		return
	}
	want := make([]byte, size)
	for c := range clients {
		if message(want, c); slices.Equal(b, want) {
			a.mu.Lock()
			defer a.mu.Unlock()
			if a.seen == nil {
				a.seen = map[int]bool{}
			}
			a.seen[c] = true
			return
		}
	}
}

func (a *arrivals) count() int64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	return int64(len(a.seen))
}

// late is why a message did not come.
var late = errors.New("a client's message did not come")
