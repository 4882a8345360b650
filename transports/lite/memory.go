package lite

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

// Memmove copies n bytes from one region to another, or within one, where the ranges may
// overlap (memmove(3)). The node where the source lies carries it out: no byte passes through
// the client.
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
