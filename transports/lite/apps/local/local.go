// Package local makes clusters of LITE nodes in one process, for the applications.
package local

import (
	"cmp"
	"context"
	"errors"
	"sync"

	"github.com/rdmaperf/rdmaperf/transports/lite"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// Cluster is some nodes, the first of which manages it, and their devices. Close closes both.
type Cluster struct {
	Nodes []*lite.Node
	devs  []rdma.Device
}

// Open makes n nodes; open gives each a device and the address that it listens at.
func Open(ctx context.Context, n int, cfg lite.Config, open func(i int) (rdma.Device, string, error)) (*Cluster,
	error) {
	c := &Cluster{}
	for i := range n {
		dev, at, err := open(i)
		if err != nil {
			return nil, errors.Join(err, c.Close())
		}
		cfg.Listen, cfg.Manager = at, ""
		if i > 0 {
			cfg.Manager = c.Nodes[0].Addr()
		}
		node, err := lite.Open(ctx, dev, cfg)
		if err != nil {
			return nil, errors.Join(err, dev.Close(), c.Close())
		}
		c.Nodes, c.devs = append(c.Nodes, node), append(c.devs, dev)
	}
	for _, node := range c.Nodes {
		if err := node.Await(ctx, n); err != nil {
			return nil, errors.Join(err, c.Close())
		}
	}
	return c, nil
}

// Kill is the sudden death of a node's device, where that can die.
func (c *Cluster) Kill(i int) {
	if d, ok := c.devs[i].(interface{ Kill() }); ok {
		d.Kill()
	}
}

// Close ends all nodes, the manager last.
func (c *Cluster) Close() error {
	var errs []error
	for i := len(c.Nodes) - 1; i >= 0; i-- {
		errs = append(errs, c.Nodes[i].Close(), c.devs[i].Close())
	}
	c.Nodes, c.devs = nil, nil
	return errors.Join(errs...)
}

// Each runs f for every node at once, and returns the first failure by number of node.
func Each(nodes []*lite.Node, f func(i int, n *lite.Node) error) error {
	errs := make([]error, len(nodes))
	var wg sync.WaitGroup
	for i, n := range nodes {
		wg.Go(func() { errs[i] = f(i, n) })
	}
	wg.Wait()
	return cmp.Or(errs...)
}
