// Package conform is the conformance suite: what the RDMA specifications and the verbs man pages require of a reliable
// connection, as cases that run unchanged on every provider and every tier over one.
//
// A [Case] is data: a stable word ID such as "ord/write-then-read", the clause, the requirement, its level and what it
// needs of a device. [Run] executes the selected cases over a [Harness], which supplies two devices that can reach each
// other, and returns a [Report]. The command line and go test (package conformtest) share all of it; the package itself
// imports no testing.
//
// Other suites bring their own cases: [RunCases] runs them by the same selection, ledger
// and verdicts, and they say what they found by a [T].
//
// # Verdicts
//
// A capability that a device does not declare makes a case unsupported before it runs, with the missing names as
// evidence. The opposite direction is checked too: a declared capability that no executed case covers fails the run
// ("coverage"), and an undeclared one must answer rdma.ErrNotSupported at once ("dev/undeclared-refused"). Unsupported
// and notrun are never merged: the first is a property of the device, the second means that nobody looked.
//
// # Expectations
//
// What a successful send-side completion proves differs between InfiniBand and iWARP (RFC 5040 §5.5), so outcomes are
// sets of legal traces keyed by rdma.Caps.Completion. Remote memory is looked at only behind a remote-visibility
// barrier: a later send that the peer has received, or a read of the same key.
//
// Some rules hold in every case and are checked without being asked for: a completion belongs to an outstanding work
// request of its own QP and comes once, in post order; an unsignalled success makes none; a success carries the posted
// opcode and length; 4 KiB of canary on both sides of every buffer stay intact (the rest of the last page, where the
// end of a registration is the subject); no completion is left over; every object closes without an error.
//
// The harness owns the devices. A case owns nothing: connections, regions and goroutines come from its [Env], which
// ends them when the case is over, however it ended. One goroutine polls both sides alternately.
//
// # Clauses
//
// RFC sections are exact. IBTA sections are those that open sources attest
// (rxe, rdmavt, rdma-core, headers of adapters, google/rdma-unit-test); Case.Unchecked
// names those that could not be checked against a licensed copy of the specification.
//
// Both ends are in one process and over one reliable connection. A provider call that ignores its deadline cannot be
// interrupted: the case becomes an error and its goroutine stays behind.
package conform
