// Package register is the workload of registrations: what it costs to have memory
// registered, used and given up again, by the device each time, through a cache, and
// from memory that was registered when it was mapped.
//
// It runs on this machine alone. Without --transport it pins pages through io_uring and
// needs no device; the transport that a run measures otherwise is not used then.
package register
