// Package lite is an indirection tier between applications and RDMA, after LITE
// (Tsai and Zhang, SOSP'17): memory is named and handled instead of keyed, all
// applications of a node share few queue pairs and one registration, and a call is
// two writes with immediate data. It runs over any [rdma.Device].
//
// A [Node] joins a cluster at the address of the node that manages it. A [Client] is
// what one goroutine uses a node through:
//
//	n, err := lite.Open(ctx, dev, lite.Config{Listen: "10.0.0.2:0", Manager: "10.0.0.1:18500"})
//	c, err := n.Client(lite.ClientConfig{})
//	h, err := c.Malloc(lite.RegionConfig{Name: "table", Size: 1 << 30, Nodes: n.Members(), Open: lite.PermRead})
//	err = c.Write(h, off, bytes)
//
// # Memory
//
// A node registers one arena, once. Regions are made of chunks of it, of one node or
// of several in turns, and are found by name. A [Handle] is local to a node; its lookup
// checks life, permission and bounds. A node with PermMaster frees a region, moves it, or
// grants it while others have it mapped: every handle is dead, and outstanding operations
// have completed, before the memory is used again. Permissions belong to nodes, not clients.
//
// One-sided operations go from the requester's handle straight to the other node's
// memory, without a lookup there. Memset, memcpy and memmove are carried out by the node
// where the bytes lie. Atomics on memory of the own node are the processor's; a device whose
// atomics are not coherent with those (IBTA 9.4.5.1) must not mix them. Operations are
// reported in the order in which they were posted.
//
// # Messages
//
// Each client node writes into a ring of its own at the server, one for each port
// (package ring), and the answer is written into the caller's buffer. One polling
// goroutine a node takes what arrives, or a caller that waits does it itself. Over a
// device without immediate data a send of four bytes follows each write. Answers lie in the
// client's memory until its next call, requests in the ring until they are answered. When
// callers that polled stop without sleeping in the tier, what arrives next may be late by
// 8 ms, unless the node has a polling goroutine that never rests (PollSpin). Where other
// processes want the CPUs (procs.Contention), a caller that polls sleeps in the device until
// something arrives.
//
// # Membership
//
// The manager assigns numbers and keeps the directory; when it fails, handles go on and names
// do not. Every node writes a heartbeat into every other each Config.Beat; after
// Config.DeadAfter without one, or at the end of the connection, a node is dead: calls to it,
// handles of its memory and all barriers fail with ErrPeerDead, and its locks are passed on.
//
// # Trust
//
// The one key of the arena lets every member write all of it. Permissions, passwords
// and bounds are checked by the requester's own node: they protect against mistakes, not
// against members that run other programs. Rings, heads, lengths, reply addresses and extents
// that a member sends are checked, and an invalid one ends its connection. A node without the
// secret is no member.
package lite
