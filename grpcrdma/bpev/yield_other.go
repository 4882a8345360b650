//go:build !linux

package bpev

// yieldThread does nothing where the package knows no way to yield.
func yieldThread() {}
