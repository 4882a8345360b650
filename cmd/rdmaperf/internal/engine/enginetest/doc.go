// Package enginetest has what tests of the engine, of loops and of workloads share: stacks
// on both sides, servers for the life of a test, transports that do wrong, quick plans.
//
// # Ownership
//
// What a helper opens is closed when its test is done.
//
// # Limitations
//
// The table of workloads is one of the process: [Main] sets it.
package enginetest
