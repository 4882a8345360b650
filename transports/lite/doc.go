// Package lite is an indirection tier over any [rdma.Device], after LITE (Tsai and Zhang, SOSP'17): memory is named,
// all applications of a node share few queue pairs and one registration, and a call is two writes with immediate data.
//
//	n, err := lite.Open(ctx, dev, lite.Config{Listen: "10.0.0.2:0", Manager: "10.0.0.1:18500"})
//	c, err := n.Client(lite.ClientConfig{})
//	h, err := c.Malloc(lite.RegionConfig{Name: "table", Size: 1 << 30, Nodes: n.Members(), Open: lite.PermRead})
//	err = c.Write(h, off, bytes)
//
// The manager keeps the directory; when it fails, handles go on and names do not. A node without a heartbeat for
// Config.DeadAfter is dead: what needs it fails with ErrPeerDead, and its locks are passed on. Permissions belong to
// nodes and protect against mistakes, not against members that run other programs. Atomics on a node's own memory are
// the processor's; a device whose atomics are not coherent with those (IBTA 9.4.5.1) must not mix them.
package lite
