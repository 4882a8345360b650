//go:build !linux

package conform

// mapCases need Linux's kinds of mappings.
var mapCases []Case
