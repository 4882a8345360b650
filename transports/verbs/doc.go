// Package verbs is the kernel's RDMA as an rdma.Device: libibverbs and librdmacm over whatever device the machine has,
// from InfiniBand and RoCE adapters to rdma_rxe and siw. It is the project's only use of cgo. Both libraries are opened
// at run time (abi.h); where something is missing, Open fails with rdma.ErrNoDevice and says what to install.
//
// With [Config].CM, and always on iWARP, connections are made by rdma_cm. Without, the two sides exchange their QPs'
// addresses over a TCP connection, whose end is how each learns that the other left, because RoCE has no word for it.
//
// A post or a poll is one cgo call for the whole slice and allocates nothing. A Device owns its context, one goroutine
// for asynchronous events and, with CM, one for connection events; Close joins them. Lock order: qp.mu, sendMu, recvMu,
// cq.mu. Send with invalidate and local invalidate need memory windows and are never declared. One P_Key, index 0; one
// path, no migration. rdma_cm chooses the device by address: of two on one interface one cannot be reached through it.
// siw stops listening when a TCP connection ends before its worker has accepted it, as in a port scan (Linux 6.1.192).
package verbs
