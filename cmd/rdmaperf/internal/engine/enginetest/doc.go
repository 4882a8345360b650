// Package enginetest has what tests of the engine, of loops and of workloads share: stacks on both sides, servers for
// the life of a test, transports that do wrong, quick plans. [Main] sets the table of workloads of the process.
package enginetest
