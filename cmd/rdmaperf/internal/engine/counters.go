package engine

import "github.com/rdmaperf/rdmaperf/reports"

// CountersAround reads now and answers the changes since then. Only the measured phase counts. A nil read has none.
func CountersAround(read func() []reports.DeviceCounters, gen int) (changes func() []reports.DeviceCounters) {
	if read == nil || gen != GenMeasure {
		return func() []reports.DeviceCounters { return nil }
	}
	before := read()
	return func() []reports.DeviceCounters { return reports.CounterChanges(before, read()) }
}
