package lite

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/rdmaperf/rdmaperf/internal/expect"
	"github.com/rdmaperf/rdmaperf/internal/leaktest"
	"github.com/rdmaperf/rdmaperf/softstack/iwarp"
	"github.com/rdmaperf/rdmaperf/transports/memdev"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// cluster is some nodes in one process.
type cluster struct {
	t     testing.TB
	nodes []*Node
	devs  []rdma.Device
	open  func(i int) (rdma.Device, string)
	cfg   Config
	dead  [MaxNodes]bool
}

func soon(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	t.Cleanup(cancel)
	return ctx
}

// onMem makes n nodes over the reference device.
func onMem(t testing.TB, n int, cfg Config) *cluster {
	f := memdev.NewFabric(memdev.Config{})
	return newCluster(t, n, cfg, func(i int) (rdma.Device, string) {
		d := expect.Get(f.Open(fmt.Sprintf("n%d", i)))(t)
		return d, fmt.Sprintf("n%d:0", i)
	})
}

// onIWARP makes n nodes over TCP on the loopback.
func onIWARP(t testing.TB, n int, cfg Config) *cluster {
	return newCluster(t, n, cfg, func(i int) (rdma.Device, string) {
		d := expect.Get(iwarp.Open(iwarp.Config{}))(t)
		return d, "127.0.0.1:0"
	})
}

// everywhere runs a test over both.
func everywhere(t *testing.T, n int, cfg Config, f func(t *testing.T, c *cluster)) {
	t.Run("mem", func(t *testing.T) { f(t, onMem(t, n, cfg)) })
	t.Run("mem sends", func(t *testing.T) {
		cfg := cfg
		cfg.Sends = true
		f(t, onMem(t, n, cfg))
	})
	t.Run("iwarp", func(t *testing.T) { f(t, onIWARP(t, n, cfg)) })
}

func newCluster(t testing.TB, n int, cfg Config, open func(i int) (rdma.Device, string)) *cluster {
	if cfg.Arena == 0 {
		cfg.Arena = 24 << 20
	}
	if cfg.Ring == 0 {
		cfg.Ring = 64 << 10
	}
	c := &cluster{t: t, open: open, cfg: cfg}
	t.Cleanup(c.close)
	for range n {
		c.join()
	}
	return c
}

func (c *cluster) join() *Node {
	c.t.Helper()
	dev, at := c.open(len(c.nodes))
	cfg := c.cfg
	cfg.Listen = at
	if len(c.nodes) > 0 {
		cfg.Manager = c.nodes[0].Addr()
	}
	n, err := Open(soon(c.t), dev, cfg)
	if err != nil {
		dev.Close()
		c.t.Fatal(err)
	}
	c.nodes, c.devs = append(c.nodes, n), append(c.devs, dev)
	for i, o := range c.nodes {
		if o.ctx.Err() == nil && !c.dead[i] {
			expect.OK(c.t, o.Await(soon(c.t), len(n.Members())))
		}
	}
	return n
}

// kill is the sudden death of a node's device.
func (c *cluster) kill(i int) {
	c.dead[i] = true
	c.devs[i].(interface{ Kill() }).Kill()
}

func (c *cluster) close() {
	for i := len(c.nodes) - 1; i >= 0; i-- {
		if err := c.nodes[i].Close(); err != nil {
			c.t.Errorf("close node %d: %v", i, err)
		}
		if err := c.devs[i].Close(); err != nil {
			c.t.Errorf("close device %d: %v", i, err)
		}
	}
}

func (c *cluster) client(i int, cfg ClientConfig) *Client {
	c.t.Helper()
	return expect.Get(c.nodes[i].Client(cfg))(c.t)
}

func pattern(n int, seed byte) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i*7+i>>8) + seed
	}
	return b
}
