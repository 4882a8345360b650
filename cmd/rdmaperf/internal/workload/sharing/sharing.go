// Package sharing is the workload of many users of one node: a queue pair for each, against few that all share in LITE.
// Both ends live in this process, and one thread serves all users in turn. So it shows what connections cost device and
// memory, not how threads get in each other's way.
package sharing

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

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
	"github.com/rdmaperf/rdmaperf/transports/lite/daemon"
	"github.com/rdmaperf/rdmaperf/transports/lite/daemonstack"
	"github.com/rdmaperf/rdmaperf/transports/lite/stack"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

const Name = "sharing"

const (
	op       = "users"
	maxUsers = 1024 // as many clients as a node of LITE has, less its own
)

var set = curves.Results(reports.Workload{
	Name: Name, Title: "Sharing",
	Intro: "Users of one node write to another, each with one write under way. A device alone has a queue pair for " +
		"each user; LITE has k for all of them, and one registration; lite(daemon) is as many clients of one daemon " +
		"process, each with rings in shared memory. A NIC caches the contexts of few queue pairs. One write under " +
		"way for each user; memory is what both ends register.",
	Dims: []reports.DimDef{{Name: "users", Help: "of one node"}},
	Figures: []reports.FigureDef{
		{Name: "rate", Quantity: reports.QuantityRate, Better: reports.More, Help: "Writes a second"},
		{Name: "queue_pairs", Quantity: reports.QuantityCount, Help: "Queue pairs of a node"},
		{Name: "registered_bytes", Quantity: reports.QuantityMemory, Help: "Registered memory in use"},
	},
}, "one thread for all users, both ends in one process", map[string]reports.DimDef{op: {Name: "users"}})

type options struct{ Users int }

func (o *options) check(int) error {
	if o.Users < 1 || o.Users >= maxUsers {
		return fmt.Errorf("%d users: want 1 to %d", o.Users, maxUsers-1)
	}
	return nil
}

type Workload struct {
	engine.ClientOnly
	users string
}

func (*Workload) Meta() workload.Meta {
	return workload.Meta{
		Name:       Name,
		Results:    set,
		Summary:    "many users, with a queue pair each or sharing a few",
		Examples:   "rdmaperf run --transport 'iwarp,lite+iwarp,lite(daemon)+iwarp' --workload sharing --users 1,8,32",
		Group:      "Workload sharing",
		OwnThreads: true,
		Over:       over,
		Sizes:      []int{64},
	}
}

func over(s transports.Stack, pt engine.Point) error {
	if _, ok := s.(*daemonstack.Stack); ok {
		return nil
	}
	return pairs.NoPair(s, pt)
}

func (f *Workload) Flags(s *pflag.FlagSet) {
	values.ListVar(s, &f.users, "users", "1,2,4,8,16,32,64,256,1000", "sharing: how many, a comma list or FROM:TO:STEP")
}

func (f *Workload) Points(c *workload.Common) (points []engine.Point, err error) {
	if s := c.AnyOf("op", "qp", "qp-sweep", "threads", "polling", "duration"); s != "" && c.Alone() {
		return nil, values.Wrong(s, "the workload sharing has one thread for all its --users; k of lite says how many "+
			"queue pairs they share")
	}
	users, err := values.Counts("users", f.users)
	if err != nil {
		return nil, err
	}
	if slices.Max(users) >= maxUsers {
		return nil, values.Wrong("users", "%d: want at most %d", slices.Max(users), maxUsers-1)
	}
	for _, size := range c.SizesOf("", f.Meta().Sizes) {
		for _, n := range users {
			points = append(points, engine.Point{Workload: Name, Alone: true, Op: op, Size: size,
				Words: fmt.Sprintf("sharing: %d users", n), Options: engine.PackOptions(options{n})})
		}
	}
	return points, nil
}

func (*Workload) Client(ctx context.Context, r *engine.Run) (err error) {
	o, err := engine.ReadOptions(r.Point, (*options).check)
	if err != nil {
		return err
	}
	open := openNative
	switch r.Stack.(type) {
	case *stack.Stack:
		open = openTier
	case *daemonstack.Stack:
		open = openProcesses
	}
	t, err := open(ctx, r, o.Users)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.close()) }()
	now, name := pairs.Clock(t.clock)
	res, err := measure(ctx, r, t, o.Users, now)
	if err != nil {
		return err
	}
	res.Parameters["clock"] = name
	r.Add(res)
	return nil
}

// compareEach is of how many writes one is compared. Arbitrary: through a daemon a look costs tens of writes.
const compareEach = 1024

func measure(ctx context.Context, r *engine.Run, t *target, users int, now func() int64) (res reports.Result,
	err error) {
	w := &pairs.Writes{Target: t.Target, Proof: drive.LocalProof(r, compareEach), Slots: users, Size: r.Point.Size,
		Now: now, Apart: true,
		Next: func(user int) pairs.Place { return pairs.Place{Off: uint64(user * pairs.Step(r.Point.Size))} }}
	n := cmp.Or(int(r.Plan.Iterations), max(200*users, 8000))
	var took int64
	for range 2 { // the first one fills caches
		w.Take(0)
		if took, err = w.Do(ctx, n); err != nil {
			return res, err
		}
	}
	res = r.Result()
	res.Polling, res.QPs = "", t.queuePairs()
	res.Verification, res.Verified = w.Take(int64(n)), r.Plan.Verify
	res.DurationNs, res.Operations = max(took, 1), int64(n)
	res.Parameters["users"] = users
	res.Detail = &curves.Point{X: float64(users), Values: map[string]float64{"rate": float64(n) * 1e9 /
		float64(res.DurationNs), "queue_pairs": float64(t.queuePairs()), "registered_bytes": float64(t.registered())}}
	return res, nil
}

// target is a window at the far end, with a place for each user.
type target struct {
	pairs.Target           // a user is a slot
	queuePairs, registered func() int
	clock                  *rdma.Clock // nil: the host's
	close                  func() error
}

func openNative(ctx context.Context, r *engine.Run, users int) (*target, error) {
	size := r.Point.Size
	n, _, err := pairs.OpenNative(ctx, r, users, users, size, 1, users*pairs.Step(size))
	if err != nil {
		return nil, err
	}
	end := func() error { _, err := n.Close(); return err }
	return &target{n, func() int { return users }, n.Registered, n.Devs[0].Caps().Clock, end}, nil
}

func openTier(ctx context.Context, r *engine.Run, users int) (*target, error) {
	size := r.Point.Size
	window := users * pairs.Step(size)
	// Each user has a buffer for answers, too.
	p, err := pairs.OpenNodes(ctx, r, [2]int{window, window + users*8<<10})
	if err != nil {
		return nil, err
	}
	left := func() int { return p.Nodes[0].Left() + p.Nodes[1].Left() }
	free := 0 // of the arenas, before the users come
	n, err := pairs.NewNamed(p, lite.ClientConfig{})
	if err == nil {
		free = left()
		err = n.Make("window", uint64(window))
	}
	if err == nil {
		err = n.Clients(users, users, size, lite.ClientConfig{Depth: 1, Wait: lite.WaitPoll})
	}
	if err == nil {
		err = n.Map("window")
	}
	if err != nil {
		return nil, errors.Join(err, p.Close())
	}
	return &target{n, func() int { return p.Nodes[1].Counts().Links }, func() int { return free - left() },
		p.Devs[1].Caps().Clock, p.Close}, nil
}

// processes is a client of one daemon for each user, with a mapping, rings and a socket of its own.
type processes struct {
	stack   *daemonstack.Stack
	daemons [2]*daemonstack.Process // the far one, and that of the users
	home    *daemon.Client
	own     lite.Handle
	clients []*daemon.Client
	handles []lite.Handle
	at      []uint64
	src     [][]byte
	size    int
	ops     [1]lite.Op
	done    [1]lite.Done
	next    int
}

func placeOf(size int) int { return 128<<10 + pairs.Step(size) }

func openProcesses(ctx context.Context, r *engine.Run, users int) (_ *target, err error) {
	p := &processes{stack: r.Stack.(*daemonstack.Stack), size: r.Point.Size}
	defer func() {
		if err != nil {
			err = errors.Join(err, p.close())
		}
	}()
	window := users * pairs.Step(p.size)
	if p.daemons[0], err = p.stack.Start(ctx, "", "", daemonstack.Need{Clients: 1, Place: placeOf(window),
		Arena: 64<<20 + window}); err != nil {
		return nil, err
	}
	if p.home, err = p.daemons[0].Dial(ctx, daemon.ClientConfig{}); err != nil {
		return nil, err
	}
	if p.daemons[1], err = p.stack.Start(ctx, ":0", p.home.Addr(),
		daemonstack.Need{Clients: users, Place: placeOf(p.size), Arena: 64<<20 + users*128<<10}); err != nil {
		return nil, err
	}
	if p.own, err = p.home.Malloc(lite.RegionConfig{Name: "window", Size: uint64(window),
		Open: lite.PermWrite}); err != nil {
		return nil, err
	}
	for range users {
		c, err := p.daemons[1].Dial(ctx, daemon.ClientConfig{})
		if err != nil {
			return nil, err
		}
		p.clients = append(p.clients, c)
		b, err := c.Alloc(p.size)
		if err != nil {
			return nil, err
		}
		at, err := c.Offset(b)
		if err != nil {
			return nil, err
		}
		h, err := c.Map("window", lite.PermWrite, "")
		if err != nil {
			return nil, err
		}
		p.at, p.handles, p.src = append(p.at, at), append(p.handles, h), append(p.src, b)
	}
	return &target{p, p.stack.Links, p.registered, nil, p.close}, nil
}

func (p *processes) Source(user int) []byte { return p.src[user] }

func (p *processes) Write(user int, at pairs.Place, size int) (bool, error) {
	p.ops[0] = lite.Op{Kind: lite.OpWrite, Handle: p.handles[user], Off: at.Off, Local: p.at[user], Len: uint32(size),
		Slot: uint32(user)}
	_, err := p.clients[user].Post(p.ops[:])
	return pairs.Posted(err)
}

// Poll looks at the clients in turn. Who finds nothing waits as the stack says, so that a crossing is paid.
func (p *processes) Poll(ended func(int)) (int, error) {
	for range p.clients {
		p.next = (p.next + 1) % len(p.clients)
		k, err := p.clients[p.next].Poll(p.done[:])
		if err != nil {
			return 0, err
		}
		if k == 0 {
			continue
		}
		if p.done[0].Status != rdma.StatusSuccess {
			return 0, &rdma.StatusError{WC: rdma.WC{Status: p.done[0].Status}}
		}
		ended(int(p.done[0].Slot))
		return 1, nil
	}
	if c := p.clients[p.next]; c.Pending() > 0 {
		c.Sleep()
	}
	return 0, nil
}

func (p *processes) Read(at pairs.Place, b []byte) error { return p.home.Read(p.own, at.Off, b) }
func (p *processes) Drive() error                        { return nil } // the daemon does

func (p *processes) registered() int {
	n := p.home.Used()
	for _, c := range p.clients {
		n += c.Used()
	}
	return n
}

func (p *processes) close() error {
	var errs []error
	for _, c := range append(p.clients, p.home) {
		if c != nil {
			errs = append(errs, c.Close())
		}
	}
	for i := len(p.daemons) - 1; i >= 0; i-- {
		if p.daemons[i] != nil {
			errs = append(errs, p.daemons[i].Close())
		}
	}
	return errors.Join(errs...)
}
