//go:build !linux

package conform

// mapCases and pageCases need Linux's kinds of mappings.
var mapCases, pageCases []Case
