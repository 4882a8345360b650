package engine

import "github.com/rdmaperf/rdmaperf/reports"

// ReadCounters makes the client read device counters before and after the measured
// phase of each point. It is outside the window; so is the server's, which goes by
// [Server.Counters].
func (c *Client) ReadCounters(read func() []reports.DeviceCounters) { c.Counters = read }

// CountersAround reads now and answers the changes since then. Only the measured
// phase counts. A nil read has none.
func CountersAround(read func() []reports.DeviceCounters, gen int) (changes func() []reports.DeviceCounters) {
	if read == nil || gen != GenMeasure {
		return func() []reports.DeviceCounters { return nil }
	}
	before := read()
	return func() []reports.DeviceCounters { return reports.CounterChanges(before, read()) }
}
