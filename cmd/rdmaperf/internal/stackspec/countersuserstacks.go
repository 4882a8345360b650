package stackspec

import (
	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/softstack/lwip"
)

// userStackCounters are those of the stacks in user space that run: what went wrong, and
// how the work was done.
func userStackCounters() (all []reports.DeviceCounters) {
	if n := lwip.Totals(); n != (lwip.Counts{}) {
		all = append(all, linkCounters("lwip",
			map[string]int64{
				"frames_dropped": int64(n.TxDropped), "frames_missed": int64(n.RxMissed),
				"packets_refused": int64(n.Refused),
				"frames_lost":     int64(n.Lost), "frames_duplicated": int64(n.Duplicated),
				"frames_reordered": int64(n.Reordered), "frames_delayed": int64(n.Delayed)},
			map[string]int64{
				"tx_frames": int64(n.TxFrames), "tx_octets": int64(n.TxOctets), "tx_copied": int64(n.TxCopied),
				"tx_referenced": int64(n.TxReferenced),
				"rx_frames":     int64(n.RxFrames), "rx_octets": int64(n.RxOctets), "rx_copied": int64(n.RxCopied),
				"bell_calls": int64(n.Bells), "yield_calls": int64(n.Yields),
				"packet_thread_usec": int64(n.Thread / 1000)})...)
	}
	return all
}

func linkCounters(stack string, lost, done map[string]int64) []reports.DeviceCounters {
	return []reports.DeviceCounters{
		{Device: stack + " links", Process: true, Counters: lost},
		{Device: stack, Detail: true, Process: true, Counters: done},
	}
}
