// Package pin registers memory as a provider with an adapter does, without one: it pins
// pages through io_uring's registered buffers (io_uring_register(2),
// IORING_REGISTER_BUFFERS2 and IORING_REGISTER_BUFFERS_UPDATE), which walk and hold the
// pages of a range as ib_umem_get does. So a registration has its real cost, counts
// against RLIMIT_MEMLOCK, and stays with its pages when the range gets others.
//
// It moves bytes too: [Registrar.Write] and [Registrar.Read] have the kernel copy
// between a registration's pages and a pipe (IORING_OP_READ_FIXED and WRITE_FIXED), as
// a device writes and reads by key: what is at the address by then plays no part.
//
// A Registrar is a ring and a pipe; its user closes it when all registrations are.
// Memory is the caller's, and is pinned until MR.Close returns.
//
// It is not a device: no queues, no peers, no protection domain but 0, and keys that say no
// more than which slot of the table and how often it was used. At most 1 GiB a
// registration and 16384 of them, which are the kernel's limits. Rights are noted, not
// enforced: the kernel pins everything for writing. Kernels before 6.13 unpin a closed
// registration when operations on the ring have passed, so a Close may run ahead of it.
package pin
