//go:build !linux

package conform

var mapCases, pageCases []Case
