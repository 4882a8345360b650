// Package regcache keeps registrations of memory behind their last use, so that the next use costs a look-up.
//
// [Scope.Get] is answered from a table when a region covers the bytes with the rights. Otherwise a region is made that
// covers all that it overlaps, with the rights of all. [Region.Put] closes nothing: idle regions are closed for the
// bounds of [Config], for a device without room, and for memory that goes away. A [Pool] registers memory when it
// maps it, a [Store] keeps memory whose peers change, and [Wrap] makes a Device over a Device.
//
// A key without remote rights serves a protection domain; one with remote rights serves one [Scope], whose peers
// trust each other. Regions in use hold memory of package rdma. [Source] is how the loss of foreign memory is noticed;
// loss in the middle of an operation is not held back. A region is its user's from Get to Put, memory stays its
// owner's, and the device outlives the cache. What cannot be joined with its neighbours is registered for one use.
package regcache
