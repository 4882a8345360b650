// Package target is the application of an RDMA device under a wire test, led by the scripted
// peer over a control channel.
//
//   - Serve is the side with the device: 'rdmaperf serve --target'. It runs over any
//     rdma.Device: user-space iWARP, or kernel verbs on an iWARP adapter.
//   - Client is the side of the script. It prepares queue pairs, posts requests, and reads
//     completions, states and memory.
//
// A control connection is TCP with one JSON object a line, asked and answered in turn. The target speaks first, which
// no iWARP responder does: so Find recognizes it. A connection owns one device, and at most one stage at a time: a QP,
// its receives, and a listener or a connect.
//
// It is for tests: whoever may connect can read and write the target's test memory, make
// it connect to addresses, and keep it busy. Memory is read while nothing is placed any
// more: after the end of a stream, or behind a message that was delivered.
package target
