// Package daemonstack is LITE whose nodes live in daemons of the same machine (package daemon):
// a [transports.Transport] and a [transports.CallTransport], as package stack is for nodes of
// this process.
//
// Each connection of calls, each listener and each server starts a daemon of its own with the
// device below; all sessions of a process to one address share one. Each session and each
// caller is a client of such a daemon. Its window or its messages lie in memory that both
// processes map, which is polled, or with [Config].Cross signalled and slept for. Daemons end
// with what they were started for, or with this process.
//
// There is no event mode, and there are no priorities. With Config.Cross, Poll sleeps for
// operations that were posted, but not for messages and bytes that the peer writes. A peer that
// closed is noticed within a tenth of a second. Handlers of calls run one after the other.
package daemonstack
