// Package ready tells which of many connections of a TCP/IP stack in user space are
// ready: [stream.Poller] for stacks that have no kernel to ask. It looks at the state of
// each connection, after driving the stack, and sleeps until the stack says that one of
// them moved.
//
// # Ownership
//
// A Poller holds the connections that it watches until Remove or Close.
//
// # Limitations
//
// A look costs a look at every connection that is watched.
package ready
