// Package victim is the application of an RDMA device under a wire test: it does with
// the device what a scripted peer tells it over a control channel, tells STags and
// addresses, and reports completions and what its memory holds.
//
//   - Serve is the side with the device: 'rdmaperf serve --victim'. It runs over any
//     rdma.Device: user-space iWARP, or kernel verbs on an iWARP adapter.
//   - Client is the side of the script.
//
// A control connection is TCP with one JSON object a line, asked and answered in turn.
// The victim speaks first, which no iWARP responder does: that is how it is told from
// one (Find). A connection owns one device, and at most one stage at a time: a QP, its
// receives, and a listener or a connect.
//
// # Ownership
//
// Serve owns its connections, their devices and its goroutines, and returns when all
// have ended. A Client belongs to one goroutine.
//
// # Limitations
//
//   - It is for tests. Who may connect can read and write the victim's test memory,
//     make it connect to addresses, and keep it busy; nothing else of the machine.
//   - The memory that it tells is read while nothing is placed any more: after the
//     end of a stream, or behind a message that was delivered.
package victim
