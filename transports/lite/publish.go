package lite

// Publish makes a region of memory that the client already has (LITE's wrap_alloc): b, which
// Client.Alloc gave, is the region's bytes as they lie, and stays the caller's. It returns a handle
// with every permission. FreeRegion ends the region; when that has succeeded, nothing accesses b
// any more and it may be freed. r.Size and r.Nodes are not used. Errors: ErrMemory, ErrExists.
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

// wholePieces is the pieces of a region that lies whole at one node.
func wholePieces(node int, off, size uint64) []piece {
	var pieces []piece
	for size > 0 {
		n := min(size, ChunkSize)
		pieces = append(pieces, piece{Node: node, Off: off, Len: n})
		off, size = off+n, size-n
	}
	return pieces
}

// publish notes the pieces of a region that this node asked for, so that it serves
// memset and memcpy there. They are the client's: free leaves them alone.
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
