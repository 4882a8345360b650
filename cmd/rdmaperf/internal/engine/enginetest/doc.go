// Package enginetest has what tests of the engine, of loops and of workloads share. [Main] sets the workloads.
package enginetest
