// Package session implements transports.Session over LITE once, for nodes of this process
// (package stack) and for those of a daemon (package daemonstack). [Node] and [User] are what
// it needs of either.
//
// A dialler joins the listener's cluster and calls its port 0 with a question that names its
// window. The answer has the port that both ends open for the session's sends, and the name
// of the listener's window, or why there is no session. Each end then maps the other's
// window: reads, writes and atomics go through that handle, and a send is a one-way message
// to the port.
package session
