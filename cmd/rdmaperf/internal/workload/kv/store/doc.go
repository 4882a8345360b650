// Package store is a key-value service over an embedded store, for measuring what carries
// its calls.
//
//	Client ─► call ─► Service ─► Store ─► bbolt
//	Reply ◄── store time, value ◄────────┘
//
// The store is bbolt, a B+tree in one memory-mapped file. Beside the LSM tree pebble it
// is the smaller cost in this program: its reads take a fifth, they are more than half
// of the operations of every mix but one, no thread compacts behind the back of what is
// measured, and it adds one dependency in pure Go rather than twenty and a C compiler's
// work. Its writes take longer (each is a transaction of its own and the only one), so
// every reply says how long the store took.
//
// # Ownership
//
// A [Service] owns its [Store]. A [Client] may be shared, a [Call] belongs to one
// goroutine; a [Reply]'s bytes are valid until its Free. Nothing of a request is kept
// once a handler returns.
//
// # Durability
//
// The file has no name once it is open: it is gone with the process, however that ends.
// Without Fsync nothing is flushed and the kernel writes back what it likes; a crash of
// the machine loses what nobody could have found again.
//
// # Limitations
//
// One writer at a time: store times of writes hold the wait for the writers before.
// Records have one length, a write replaces a part of a record or all of it, and nothing
// is deleted.
package store
