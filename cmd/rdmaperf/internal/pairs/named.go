package pairs

import (
	"github.com/rdmaperf/rdmaperf/transports/lite"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// Named is a [Target] of two nodes of LITE: regions of the first, to which clients of the second write.
type Named struct {
	*Nodes
	Both  bool          // a poll keeps the polling goroutine of the far node asleep, too
	Home  *lite.Client  // of the first node
	Owned []lite.Handle // of Home, by region

	clients []*lite.Client
	handles []lite.Handle // of the second node, by region
	src     [][]byte      // by slot
	at      []uint64
	ops     [1]lite.Op
	done    [16]lite.Done
	next    int
}

// NewNamed has no regions and no clients. The nodes stay their owner's.
func NewNamed(p *Nodes, home lite.ClientConfig) (n *Named, err error) {
	n = &Named{Nodes: p}
	n.Home, err = p.Nodes[0].Client(home)
	return n, err
}

// Make makes one more region.
func (n *Named) Make(name string, size uint64) error {
	h, err := n.Home.Malloc(lite.RegionConfig{Name: name, Size: size, Open: lite.PermWrite | lite.PermRead})
	if err == nil {
		n.Owned = append(n.Owned, h)
	}
	return err
}

// Map maps the next of the regions where the clients are.
func (n *Named) Map(name string) error {
	h, err := n.clients[0].Map(name, lite.PermWrite, "")
	if err == nil {
		n.handles = append(n.handles, h)
	}
	return err
}

// Clients makes as many, which so many slots of size bytes share.
func (n *Named) Clients(clients, slots, size int, cfg lite.ClientConfig) error {
	for i := range slots {
		if i < clients {
			c, err := n.Nodes.Nodes[1].Client(cfg)
			if err != nil {
				return err
			}
			n.clients = append(n.clients, c)
		}
		c := n.clients[i%clients]
		b, err := c.Alloc(size)
		if err != nil {
			return err
		}
		at, err := c.Offset(b)
		if err != nil {
			return err
		}
		n.src, n.at = append(n.src, b), append(n.at, at)
	}
	return nil
}

func (n *Named) Source(slot int) []byte { return n.src[slot] }

func (n *Named) Write(slot int, at Place, size int) (bool, error) {
	n.ops[0] = lite.Op{Kind: lite.OpWrite, Handle: n.handles[at.Region], Off: at.Off, Local: n.at[slot],
		Len: uint32(size), Slot: uint32(slot)}
	_, err := n.clients[slot%len(n.clients)].Post(n.ops[:])
	return Posted(err)
}

// Poll looks at the clients in turn until one has something: each look moves the clock of a modelled device.
func (n *Named) Poll(ended func(int)) (k int, err error) {
	for i := 0; i < len(n.clients) && k == 0 && err == nil; i++ {
		n.next = (n.next + 1) % len(n.clients)
		k, err = n.clients[n.next].Poll(n.done[:])
	}
	for i := range n.done[:k] {
		if s := n.done[i].Status; s != rdma.StatusSuccess {
			return k, &rdma.StatusError{WC: rdma.WC{Status: s}}
		}
		ended(int(n.done[i].Slot))
	}
	if err == nil && n.Both {
		err = n.Drive()
	}
	return k, err
}

func (n *Named) Read(at Place, b []byte) error { return n.Home.Read(n.Owned[at.Region], at.Off, b) }

// Drive has nothing to do where the far node polls for itself.
func (n *Named) Drive() error {
	if n.Both {
		n.Nodes.Nodes[0].Progress()
	}
	return nil
}
