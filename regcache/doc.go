// Package regcache keeps registrations of memory behind their last use, so that the
// next use of the same memory costs a look-up, and never lets one reach memory of
// another owner.
//
// A [Cache] serves any device, or anything that can register memory. [Scope.Get] is
// answered from a table when a region covers the bytes with the rights; otherwise the
// region that results is one that covers all that it overlaps, with the rights of all.
// [Region.Put] ends a use and closes nothing: idle regions are closed for the bounds of
// [Config], the least recently used first, for a device that has no room (ENOMEM,
// RLIMIT_MEMLOCK), and for memory that goes away. A [Pool] registers its memory when it
// maps it, and unmaps it late. A [Store] keeps memory whose peers change: what only this
// side uses stays registered there, and [Region.Revoke] ends the keys that a peer got. [Wrap]
// makes a tier of it all, a Device over a Device.
//
// # When a key can be used
//
// A key without remote rights is of no use to a peer, and serves everybody of a
// protection domain. A key with remote rights belongs to one [Scope], an owner: it is
// given to no other, and reaches no byte that this owner did not request. Overlapping
// requests of one owner are joined, so the peers of a scope trust each other with the
// rights and bytes of all of them.
//
// Package rdma notifies the cache before its memory leaves ([rdma.Watch]). Its idle regions are
// closed then; regions in use hold it until their last Put, and nobody else is given
// the memory before. That is exact. Foreign memory can be unmapped by a system call that
// nobody sees: [Source] is how that is noticed, and Cache.Source says by which means.
//
// # The tier
//
// [Wrap]'s device registers through a cache, with one owner for each protection domain.
// What it keeps behind a Close is declared with rdma.FeatKeepsKeys: registrations
// without remote rights. Those with remote rights are revoked when they are closed,
// unless TierConfig.Keep says otherwise; then a peer's key is good until the cache gives
// the region up, as in the caches of MPI libraries, and what conformance asks of closed
// keys does not hold. A local_inv of a kept registration revokes it for all who share it.
//
// The cache owns the registrations; a region is its user's from Get to Put, which comes
// when all that was posted with its keys has completed. Memory stays its owner's, who
// frees it whenever it likes. The device outlives the cache.
//
// Foreign memory that is unmapped, moved or dropped in the middle of an operation is
// not held back: devices that pin pages write to the old ones, which nobody else has,
// and those that reach memory by its address fault, as with any other misuse of it. A
// pool's ranges keep what their last user wrote. Regions of one table do not overlap:
// what cannot be joined (two mappings side by side, a part of a pool with rights that
// the pool has not) is registered for one use and closed behind it.
package regcache
