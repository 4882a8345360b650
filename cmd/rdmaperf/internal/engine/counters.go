package engine

import "github.com/rdmaperf/rdmaperf/reports"

// CountersAround reads now and returns what reads the changes since then, none outside the measured phase.
func CountersAround(read func() []reports.DeviceCounters, gen int) (changes func() []reports.DeviceCounters) {
	if read == nil || gen != GenMeasure {
		return func() []reports.DeviceCounters { return nil }
	}
	before := read()
	return func() []reports.DeviceCounters { return reports.CounterChanges(before, read()) }
}
