// Package ready reports which connections of a TCP/IP stack in user space are ready: [stream.Poller] for stacks that
// have no kernel to ask. It looks at the state of each connection, after driving the stack, and sleeps until the stack
// says that one of them moved.
//
// A Poller holds the connections that it watches until Remove or Close. One poll looks at each of them.
package ready
