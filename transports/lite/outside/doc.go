// Package outside is LITE through its daemon as workloads see it: a [transports.Transport]
// and a [transports.CallTransport] whose node lives in another process of the machine, which
// package daemon serves. It stands beside package stack, whose node lives inside.
//
// Each connection of calls, each listener and each server starts a daemon of its own for the
// cluster that it joins or founds, with the device below; all sessions of a process to one
// address share one. A session is a client with a place of its own: its window lies there and
// is published, and what the peer writes is seen there without any crossing. Each caller is a client of that daemon, with a place of
// its own; the server is one client that serves a port. What crosses between the processes
// is polled, or with [Config].Cross rung and slept for.
//
// # Ownership
//
// A [Stack] owns its device, which tells its abilities and carries nothing. Daemons end
// with what they were started for, or with this process.
//
// # Limitations
//
// At most [MaxSessions] sessions of one address and of one listener, 240 operations and as
// many receives under way, no event mode, no inline bytes, no write with immediate, no
// priorities. With Config.Cross, Poll sleeps for operations that were posted; messages and
// bytes that the peer writes are looked for, not slept for. A peer that closed is noticed
// within a tenth of a second.
//
// Unary calls and streams of exchanges only. The handler runs where the server looks: one
// that takes long holds up all.
package outside
