// Package suite holds what a cluster of package lite must do, as cases for 'rdmaperf conform --transport lite+X'.
//
// Every case has three nodes in one process over fresh devices. The clauses are those of the paper (Tsai and Zhang,
// SOSP'17), of its published code (lite.h, lite_core.c), and of package lite where it says more.
package suite

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/rdmaperf/rdmaperf/transports/conform"
	"github.com/rdmaperf/rdmaperf/transports/lite"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// Client is what cases use of a client: [lite.Client], or one that is wrong on purpose.
type Client interface {
	lite.Access
	NewLock(name string, home int) (*lite.Lock, error)
	OpenLock(name string) (*lite.Lock, error)
}

var _ Client = (*lite.Client)(nil)

// Node is a device for one node of a case.
type Node struct {
	Device rdma.Device
	Listen string
	Kill   func() // nil: it cannot die
}

// Options choose what runs, as for the other suites.
type Options struct {
	conform.Options
	Config lite.Config         // of every node; Listen and Manager are the suite's
	Wrong  func(Client) Client // makes clients wrong on purpose; nil: they are right
}

const (
	nodes     = 3
	arena     = 64 << 20
	timeout   = 3 * time.Second // of a client
	deadAfter = 3 * time.Second // how long a dead node may go unnoticed
)

// Run checks the selected cases on clusters over devices of open, until all have a verdict, or soon after ctx ends.
func Run(ctx context.Context, name string, open func(i int) (Node, error), o Options) conform.Report {
	o.Options = o.Options.WithDefaults(Catalogue)
	rows := map[string]row{}
	for _, r := range table {
		rows[r.ID] = r
	}
	return conform.RunCases(ctx, name, o.Options, func(ctx context.Context, c *conform.Case, res *conform.Result) {
		judge(ctx, rows[c.ID], open, &o, res)
	})
}

// Catalogue lists the cases.
func Catalogue() []conform.Case {
	all := make([]conform.Case, len(table))
	for i := range table {
		all[i] = table[i].Case
	}
	return all
}

func judge(ctx context.Context, r row, open func(i int) (Node, error), o *Options, res *conform.Result) {
	ctx, cancel := context.WithTimeout(ctx, o.CaseTimeout)
	defer cancel()
	c := &cluster{ctx: ctx, cfg: o.Config, wrong: o.Wrong}
	err := c.Guard(func() {
		for i := range nodes {
			c.join(open, i)
		}
		r.run(c)
	})
	if e := c.close(); err == nil {
		err = e
	}
	res.Settle(err, c.Notes())
}

type cluster struct {
	conform.T
	ctx   context.Context
	cfg   lite.Config
	wrong func(Client) Client
	made  []Node
	nodes []*lite.Node
	dead  [nodes]bool
}

func (c *cluster) join(open func(i int) (Node, error), i int) {
	m, err := open(i)
	c.must("open a device", err)
	c.made = append(c.made, m)
	cfg := c.cfg
	cfg.Listen, cfg.Manager, cfg.Arena, cfg.Timeout, cfg.DeadAfter = m.Listen, "", arena, timeout, deadAfter
	if i > 0 {
		cfg.Manager = c.nodes[0].Addr()
	}
	n, err := lite.Open(c.ctx, m.Device, cfg)
	c.must("join", err)
	c.nodes = append(c.nodes, n)
	for _, o := range c.nodes {
		c.must("see every member", o.Await(c.ctx, i+1))
	}
}

func (c *cluster) close() error {
	var errs []error
	for i := len(c.nodes) - 1; i >= 0; i-- {
		if err := c.nodes[i].Close(); err != nil && !c.dead[i] {
			errs = append(errs, fmt.Errorf("close node %d: %w", i, err))
		}
	}
	for i := len(c.made) - 1; i >= 0; i-- {
		if err := c.made[i].Device.Close(); err != nil && !c.dead[i] {
			errs = append(errs, fmt.Errorf("close device %d: %w", i, err))
		}
	}
	return errors.Join(errs...)
}

// kill is the sudden death of a node's device.
func (c *cluster) kill(i int) {
	if c.made[i].Kill == nil {
		c.Lacks("the provider cannot die on purpose")
	}
	c.dead[i] = true
	c.made[i].Kill()
}

func (c *cluster) client(i int, cfg lite.ClientConfig) Client {
	if cfg.MaxReply == 0 {
		cfg.MaxReply = lite.ChunkSize / 2
	}
	cl, err := c.nodes[i].Client(cfg)
	c.must("make a client", err)
	if c.wrong != nil {
		return c.wrong(cl)
	}
	return cl
}

// must ends the case as an error: what is checked could not be.
func (c *cluster) must(what string, err error) {
	if err != nil {
		c.Stop(fmt.Errorf("%s: %w", what, err))
	}
}

// ok fails the case.
func (c *cluster) ok(what string, err error) {
	if err != nil {
		c.Fail(err.Error(), what+" succeeds")
	}
}

func (c *cluster) wants(what string, err, want error) {
	if !errors.Is(err, want) {
		c.Fail(fmt.Sprint(err), fmt.Sprintf("%s: %v", what, want))
	}
}

func (c *cluster) holds(what string, yes bool, got any) {
	if !yes {
		c.Fail(fmt.Sprint(got), what)
	}
}

// atomics ends the case on devices without them.
func (c *cluster) atomics() {
	d := c.made[0].Device.Caps()
	if !d.Ops.Has(rdma.OpFetchAdd) || !d.Ops.Has(rdma.OpCmpSwap) {
		c.Lacks("the device has no atomics")
	}
}

// errOf is the error of a call with a result.
func errOf[T any](_ T, err error) error { return err }

func (c *cluster) same(what string, got, want []byte) {
	c.holds(what, bytes.Equal(got, want), fmt.Sprintf("%d other bytes", len(got)))
}

func (c *cluster) serve(node, port int, cfg lite.PortConfig) *lite.Port {
	p, err := c.nodes[node].Serve(port, cfg)
	c.must("serve", err)
	return p
}

func (c *cluster) newLock(cl Client, name string, home int) *lite.Lock {
	l, err := cl.NewLock(name, home)
	c.ok("new lock", err)
	return l
}

func (c *cluster) openLock(cl Client, name string) *lite.Lock {
	l, err := cl.OpenLock(name)
	c.ok("open lock", err)
	return l
}

type row struct {
	conform.Case
	run func(c *cluster)
}

func must(id, clause, requirement string, run func(c *cluster)) row {
	return row{conform.Case{ID: id, Clause: clause, Requirement: requirement, Level: conform.Must}, run}
}

// pair is must for a case of clients of the nodes 1 and 2.
func pair(id, clause, requirement string, run func(c *cluster, a, b Client)) row {
	return must(id, clause, requirement, func(c *cluster) {
		run(c, c.client(1, lite.ClientConfig{}), c.client(2, lite.ClientConfig{}))
	})
}

// table is all cases, in the order in which they run.
var table = slices.Concat(memoryCases, handleCases, callCases, lockCases, nodeCases)

func region(c *cluster, cl Client, name string, size uint64, open lite.Perm, at ...int) lite.Handle {
	h, err := cl.Malloc(lite.RegionConfig{Name: name, Size: size, Nodes: at, Open: open, Password: "sesame"})
	c.ok("malloc of "+name, err)
	return h
}

const readWrite = lite.PermRead | lite.PermWrite

// mapped maps the region r.
func mapped(c *cluster, cl Client, want lite.Perm) lite.Handle {
	h, err := cl.Map("r", want, "sesame")
	c.ok("map", err)
	return h
}

func pattern(n int, seed byte) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i*7+i>>8) + seed
	}
	return b
}

func read(c *cluster, cl Client, h lite.Handle, off uint64, n int) []byte {
	b := make([]byte, n)
	c.ok("read", cl.Read(h, off, b))
	return b
}
