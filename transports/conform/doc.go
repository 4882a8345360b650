// Package conform is the conformance suite: what the RDMA specifications and the verbs man pages require of a reliable
// connection, as cases that run unchanged on every provider and every tier over one. [Run] executes [Case]s over a
// [Harness], which owns two devices that reach each other; [RunCases] runs cases of other suites, which use a [T].
//
// A declared capability that no executed case covers fails the run ("coverage"), and an undeclared one must answer
// rdma.ErrNotSupported. Unsupported is a property of the device; notrun means that nobody looked. Outcomes are sets of
// legal traces by rdma.Caps.Completion (RFC 5040 §5.5). In every case completions come once and in post order, canaries
// of 4 KiB beside every buffer stay intact, and every object closes. What a case makes ends with its [Env].
//
// RFC sections are exact; IBTA sections are those that open sources attest, and Case.Unchecked names those that no
// licensed copy was held against. A provider call that ignores its deadline makes an error and leaves its goroutine.
package conform
