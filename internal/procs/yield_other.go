//go:build !linux

package procs

// YieldThread does nothing where the package knows no way to yield.
func YieldThread() {}
