// Package outside is LITE through its daemon as workloads see it: a
// [transports.CallTransport] whose node lives in another process of the machine, which
// package daemon serves. It stands beside package stack, whose node lives inside.
//
// Each connection and each server starts a daemon of its own for the cluster that it joins
// or founds, with the device below. Each caller is a client of that daemon, with a place of
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
// Unary calls and streams of exchanges only. The handler runs where the server looks: one
// that takes long holds up all.
package outside
