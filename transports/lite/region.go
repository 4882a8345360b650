package lite

// RegionConfig is how a region is made.
type RegionConfig struct {
	Name     string // in the cluster, 1 to 255 bytes
	Size     uint64 // bytes
	Nodes    []int  // where its chunks lie, in turns; none means this node
	Open     Perm   // what any node with the password may have
	Password string
}

// Malloc makes a region of zeros and returns a handle with every permission; the client's node is its first master.
// Errors: ErrExists, ErrNoSpace, ErrNoMember, ErrPeerDead.
func (c *Client) Malloc(r RegionConfig) (Handle, error) {
	if len(r.Nodes) == 0 {
		r.Nodes = []int{c.node.id}
	}
	q := createRequest{Name: r.Name, Size: r.Size, Nodes: r.Nodes, Open: r.Open, Password: []byte(r.Password)}
	return c.obtain("malloc", r.Name, opCreate, q)
}

// Publish makes a region of memory that Client.Alloc gave (LITE's wrap_alloc), and returns a handle with every
// permission. b stays the caller's, who may free it when FreeRegion has succeeded. r.Size and r.Nodes are not used.
// Errors: ErrMemory, ErrExists.
func (c *Client) Publish(r RegionConfig, b []byte) (Handle, error) {
	n := c.node
	off, ok := n.inside(b)
	if !ok || len(b) == 0 || off%8 != 0 || off < mailEnd {
		return 0, opError("publish", r.Name, ErrMemory)
	}
	q := createRequest{Name: r.Name, Size: uint64(len(b)), Nodes: []int{n.id}, Open: r.Open,
		Password: []byte(r.Password), At: off}
	return c.obtain("publish", r.Name, opCreate, q)
}

// Map finds a region by name, for exactly the permissions wanted. Errors: ErrNoRegion, ErrPassword, ErrPermission.
func (c *Client) Map(name string, want Perm, password string) (Handle, error) {
	return c.obtain("map", name, opMap, mapRequest{Name: name, Want: want, Password: []byte(password)})
}

// obtain makes a handle of the manager's answer. The lock keeps an unmap of the last handle from overtaking it.
func (c *Client) obtain(what, name string, op controlOp, req any) (Handle, error) {
	n := c.node
	n.ctlMu.Lock()
	defer n.ctlMu.Unlock()
	var a mapAnswer
	if err := n.askFor(c, 0, op, req, &a); err != nil {
		return 0, opError(what, name, err)
	}
	if q, ok := req.(createRequest); ok && q.At != 0 {
		n.publish(a.Region, a.Pieces)
	}
	err := n.check(&a)
	var h Handle
	if err == nil {
		h, err = n.handles.add(newEntry(a.Region, a.Size, a.Perm, a.Pieces))
	}
	if err != nil {
		return 0, opError(what, name, err)
	}
	return h, nil
}

// check refuses an answer of the manager that reaches other memory than a region's.
func (n *Node) check(a *mapAnswer) error {
	left := a.Size
	for _, p := range a.Pieces {
		if p.Len == 0 || p.Len > left || p.Len != min(left, ChunkSize) || p.Off < mailEnd {
			return ErrFail
		}
		left -= p.Len
		size := uint64(len(n.mem))
		if p.Node != n.id {
			o, err := n.peerOf(p.Node)
			if err != nil {
				return err
			}
			size = o.size
		}
		if p.Off > size || p.Len > size-p.Off || p.Off%8 != 0 {
			return ErrFail
		}
	}
	if left != 0 || a.Size == 0 {
		return ErrFail
	}
	return nil
}

// Unmap ends a handle. The region stays. Operations that are on their way finish.
func (c *Client) Unmap(h Handle) error {
	e, last := c.node.handles.remove(h)
	if e == nil {
		return ErrDeadHandle
	}
	if !last {
		return nil
	}
	for w := (waiter{}); e.inflight.Load() > 0; {
		c.node.pollLinks()
		if !w.waitPolling(c) {
			return ErrTimeout // the manager goes on counting this node
		}
	}
	n := c.node
	n.ctlMu.Lock()
	defer n.ctlMu.Unlock()
	if n.handles.has(e.region) {
		return nil // mapped again meanwhile
	}
	return n.askFor(c, 0, opUnmap, regionRequest{Region: e.region}, nil)
}

// FreeRegion ends a region: every handle of it is dead before its memory is freed. It takes a handle with PermMaster.
func (c *Client) FreeRegion(h Handle) error {
	e, err := c.node.handles.look(h, PermMaster, 0, 0)
	if err != nil {
		return err
	}
	if err := c.control(0, opDelete, regionRequest{Region: e.region}, nil); err != nil {
		return err
	}
	c.node.handles.remove(h)
	return nil
}

// Grant lets a node map the region with perm without the password. A handle with PermMaster grants anything; one with
// PermShare grants what it has, except PermMaster.
func (c *Client) Grant(h Handle, node int, perm Perm) error {
	e, err := c.node.handles.enter(h, 0, 0, 0)
	if err != nil {
		return err
	}
	defer e.leave()
	if !e.perm.Has(PermMaster) && !e.perm.Has(PermShare|perm) || !e.perm.Has(PermMaster) && perm.Has(PermMaster) {
		return ErrPermission
	}
	return c.control(0, opGrant, regionRequest{Region: e.region, Node: node, Perm: perm}, nil)
}

// Move puts the region onto other nodes. Every handle is dead then, h too; the result is the region in its new place.
func (c *Client) Move(h Handle, nodes ...int) (Handle, error) {
	e, err := c.node.handles.look(h, PermMaster, 0, 0)
	if err != nil {
		return 0, err
	}
	moved, err := c.obtain("move", "region", opMove, regionRequest{Region: e.region, Nodes: nodes, Mine: e.perm})
	if err == nil {
		c.node.handles.remove(h)
	}
	return moved, err
}

// Size is the size of the region behind a handle, bytes.
func (c *Client) Size(h Handle) (uint64, error) {
	e, err := c.node.handles.look(h, 0, 0, 0)
	if err != nil {
		return 0, err
	}
	return e.size, nil
}

func wholePieces(node int, off, size uint64) []piece {
	var pieces []piece
	for size > 0 {
		n := min(size, ChunkSize)
		pieces = append(pieces, piece{Node: node, Off: off, Len: n})
		off, size = off+n, size-n
	}
	return pieces
}

// publish notes the pieces of a client's memory, for memset and memcpy there; free leaves them alone.
func (n *Node) publish(region uint64, pieces []piece) {
	n.spaceMu.Lock()
	defer n.spaceMu.Unlock()
	extents := map[uint64]uint64{}
	for _, p := range pieces {
		extents[p.Off] = p.Len
	}
	n.owned[region] = extents
	n.published[region] = true
}

// Memset fills n bytes of the region at off, at the nodes where they lie.
func (c *Client) Memset(h Handle, off uint64, b byte, n uint64) error {
	e, err := c.node.handles.enter(h, PermWrite, off, n)
	if err != nil {
		return err
	}
	defer e.leave()
	for n > 0 {
		p, at := e.find(off)
		size := min(n, p.Len-at)
		q := fillRequest{Region: e.region, Off: p.Off + at, Len: size, Byte: b}
		if err := c.control(p.Node, opFill, q, nil); err != nil {
			return err
		}
		off, n = off+size, n-size
	}
	return nil
}

// Memmove copies n bytes from one region to another, or within one, where the ranges may overlap (memmove(3)). The node
// of the source carries it out: no byte passes through the client.
func (c *Client) Memmove(dst Handle, dstOff uint64, src Handle, srcOff, n uint64) error {
	from, err := c.node.handles.enter(src, PermRead, srcOff, n)
	if err != nil {
		return err
	}
	defer from.leave()
	to, err := c.node.handles.enter(dst, PermWrite, dstOff, n)
	if err != nil {
		return err
	}
	defer to.leave()
	// Parts that lie ahead of what they overwrite go last.
	backwards := from.region == to.region && srcOff < dstOff
	for left := n; left > 0; {
		var s, d uint64
		var size uint64
		if backwards {
			s, d = srcOff+left, dstOff+left // ends
			size = min(left, (s-1)%ChunkSize+1, (d-1)%ChunkSize+1)
			s, d = s-size, d-size
		} else {
			s, d = srcOff+n-left, dstOff+n-left
			size = min(left, ChunkSize-s%ChunkSize, ChunkSize-d%ChunkSize)
		}
		p, at := from.find(s)
		o, there := to.find(d)
		q := copyRequest{Region: from.region, Off: p.Off + at, Len: size, Node: o.Node, To: o.Off + there,
			Into: to.region}
		if err := c.control(p.Node, opCopy, q, nil); err != nil {
			return err
		}
		left -= size
	}
	return nil
}

// pollLinks polls every queue pair with something on its way.
func (n *Node) pollLinks() {
	for i := range n.links {
		if l := n.links[i].Load(); l != nil && l.inUse.Load() > 0 {
			l.poll()
		}
	}
}
