package pairs

import (
	"context"
	"errors"
	"time"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/transports/lite"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// Native is a [Target] of two devices: each region of the far end has a registration of its own.
type Native struct {
	*Devices
	Both bool // a poll looks at the far end, too

	size     int // bytes of the longest write
	each     int // bytes of a region
	src, mem rdma.Buffer
	mr       rdma.MR // of src
	regions  []rdma.MR
	wr       [1]rdma.SendWR
	wcs      [64]rdma.WC
}

// Step is what lies between what two slots write, bytes.
func Step(size int) int { return (size + 63) &^ 63 }

// OpenNative opens devices with qps connections, which so many slots share, for writes of up to size bytes to regions
// of each bytes. took is what registering one of those took.
func OpenNative(ctx context.Context, r *engine.Run, qps, slots, size, regions, each int) (_ *Native,
	took time.Duration, err error) {
	n := &Native{size: size, each: each}
	defer func() {
		if err != nil {
			_, closing := n.Close()
			err = errors.Join(err, closing)
		}
	}()
	if n.Devices, err = OpenReceiving(ctx, r, qps, slots/qps, 0); err != nil {
		return nil, 0, err
	}
	if n.src, err = rdma.Alloc(slots * Step(size)); err != nil {
		return nil, 0, err
	}
	if n.mr, err = n.Devs[0].RegMR(0, n.src, rdma.LocalWrite); err != nil {
		n.mr = nil
		return nil, 0, err
	}
	if n.mem, err = rdma.Alloc(regions * each); err != nil {
		return nil, 0, err
	}
	begin := time.Now()
	for i := range regions {
		part, _ := n.mem.Slice(i*each, each) // inside by what is above
		mr, err := n.Devs[1].RegMR(0, part, rdma.LocalWrite|rdma.RemoteWrite)
		if err != nil {
			return nil, 0, err
		}
		n.regions = append(n.regions, mr)
	}
	return n, time.Since(begin) / time.Duration(regions), nil
}

func (n *Native) Source(slot int) []byte { return n.src.Bytes()[slot*Step(n.size):][:n.size] }

func (n *Native) Write(slot int, at Place, size int) (bool, error) {
	m := n.regions[at.Region]
	wr := &n.wr[0]
	wr.ID, wr.Op, wr.Flags, wr.NumSGE = uint64(slot), rdma.OpWrite, rdma.Signaled, 1
	wr.RemoteAddr, wr.RKey = m.Addr()+at.Off, m.RKey()
	wr.SGE[0] = rdma.SGE{Addr: n.src.Addr() + uint64(slot*Step(n.size)), Len: uint32(size), LKey: n.mr.LKey()}
	_, err := n.QPs[0][slot%len(n.QPs[0])].PostSend(n.wr[:])
	return Posted(err)
}

// Posted is what [Target.Write] returns where a post returned err.
func Posted(err error) (bool, error) {
	if err == rdma.ErrQueueFull {
		return false, nil
	}
	return err == nil, err
}

func (n *Native) Poll(ended func(int)) (int, error) {
	k, err := n.CQs[0].Poll(n.wcs[:])
	for i := range n.wcs[:k] {
		if n.wcs[i].Status != rdma.StatusSuccess {
			return k, &rdma.StatusError{WC: n.wcs[i]}
		}
		ended(int(n.wcs[i].ID))
	}
	if err == nil && n.Both {
		err = n.Drive()
	}
	return k, err
}

func (n *Native) Read(at Place, b []byte) error {
	copy(b, n.mem.Bytes()[at.Region*n.each+int(at.Off):])
	return nil
}

func (n *Native) Drive() error {
	_, err := n.CQs[1].Poll(n.wcs[:])
	return err
}

// Registered is the bytes of both ends.
func (n *Native) Registered() int { return n.src.Len() + n.mem.Len() }

// Close closes everything; each is what deregistering a region took.
func (n *Native) Close() (each time.Duration, err error) {
	var errs []error
	if n.Devices != nil {
		errs = append(errs, n.Disconnect())
	}
	begin := time.Now()
	for _, m := range n.regions {
		errs = append(errs, m.Close())
	}
	if len(n.regions) > 0 {
		each = time.Since(begin) / time.Duration(len(n.regions))
	}
	if n.mr != nil {
		errs = append(errs, n.mr.Close())
	}
	errs = append(errs, n.mem.Free(), n.src.Free())
	if n.Devices != nil {
		errs = append(errs, n.Devices.Close())
	}
	return each, errors.Join(errs...)
}

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
