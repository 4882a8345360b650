// Package callstest is what every carrier of calls must do, as tests, and the smallest
// one that does it.
//
// [Run] holds a pair of transports.CallTransport against the contract: bytes, modes,
// methods, errors, deadlines, calls at once, ends. Messages are 1 byte and more: a transport
// need not carry empty ones. Run closes nothing that its ends function made.
//
// [Mem] is the reference: it carries calls inside a process and is for tests alone. It
// owns what it listens on until Close.
package callstest
