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
// of several by turns, and are found by name. A [Handle] is local to a node and never
// travels; its look-up checks life, permission and bounds. Whoever has PermMaster
// frees a region, moves it, or grants it while others have it mapped: every handle
// dies, and what was on its way ends, before the memory is anybody else's. The
// principal of permissions is the node, not the client.
//
// One-sided operations go from the requester's handle straight to the other node's
// memory; nobody looks anything up there. Memset, memcpy and memmove are carried out
// by the node where the bytes lie.
//
// # Messages
//
// Each client node writes into a ring of its own at the server, one for each port
// (package ring), and the answer is written into the caller's buffer. One polling
// goroutine a node takes what arrives, or a caller that waits does it itself. Over a
// device without immediate data a send of four bytes follows each write, and "sends"
// stands in the stack's name. The head of a ring and the count of receives posted
// again are written into the sender's memory; they take no receive.
//
// # Membership
//
// The manager gives numbers and keeps the directory. Every node writes a sign of life
// into every other each Config.Beat; after Config.DeadAfter without one, or at the
// end of the connection, a node is dead: calls to it, handles of what lay there and
// barriers fail with ErrPeerDead, its locks are passed on, its semaphores given back.
//
// # Trust
//
// The one key of the arena lets every member write all of it. Permissions, passwords
// and bounds are checked by the requester's own node: they keep programs from
// mistakes, and members from each other only as far as those run this package. What a
// member says is checked (rings, heads, lengths, reply addresses, extents): a lie
// costs it its connection. Who does not know the secret is no member.
//
// # Ownership
//
// A node owns its arena, queue pairs and goroutines (polling, accepting, beating, one
// or two for control), not the device. Bytes that an operation names are the tier's
// until it is done. Answers lie in the client's memory until its next call, requests
// in the ring until they are answered.
//
// # Limitations
//
// The manager does not survive its own death: handles go on, names do not. Atomics on
// memory of the own node are the processor's; a device whose atomics are not coherent
// with those (IBTA 9.4.5.1, atomicity by the adapter alone) must not mix them. The
// memory of a region that a node does not let go of comes back when that node is
// gone. A barrier fails for everybody when any node dies. What arrives when callers that
// polled all along stop, without sleeping in the tier, may be late by 8 ms, unless the node
// has a polling goroutine that never rests (PollSpin). Operations are reported in
// the order in which they were posted. Both ends have the same byte order.
package lite
