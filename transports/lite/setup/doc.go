// Package setup is how the two ends of a session of LITE meet, wherever their nodes live: in
// the process (package stack) or in a daemon (package outside).
//
// A dialler joins the listener's cluster and calls its port [Port] with an [Ask], which names
// its window. The listener answers with an [Answer]: the port that both ends open for the
// session's sends, and the name of its own window; or why there is no session. Each maps the
// other's window then.
//
// # Ownership
//
// [Ports] belongs to its listener and is safe for concurrent use. All else is values.
//
// # Limitations
//
// What is said is JSON, as a set-up takes milliseconds anyway. It has no version of its own:
// who joined the cluster speaks LITE's.
package setup
