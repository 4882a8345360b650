package main

import (
	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/softstack/lwip"
)

// Devices of lwIP's counters: what went wrong, and how the work was done.
const (
	lostDevice  = "lwip links"
	stackDevice = "lwip"
)

// userStackCounters are those of lwIP, when it runs.
func userStackCounters() []reports.DeviceCounters {
	n := lwip.Totals()
	if n == (lwip.Counts{}) {
		return nil
	}
	return []reports.DeviceCounters{
		{Device: lostDevice, Process: true, Counters: map[string]int64{
			"frames_dropped": int64(n.TxDropped), "frames_missed": int64(n.RxMissed), "packets_refused": int64(n.Refused),
			"frames_lost": int64(n.Lost), "frames_duplicated": int64(n.Duplicated), "frames_reordered": int64(n.Reordered)}},
		{Device: stackDevice, Detail: true, Process: true, Counters: map[string]int64{
			"tx_frames": int64(n.TxFrames), "tx_octets": int64(n.TxOctets), "tx_copied": int64(n.TxCopied),
			"rx_frames": int64(n.RxFrames), "rx_octets": int64(n.RxOctets), "rx_copied": int64(n.RxCopied),
			"bell_calls": int64(n.Bells), "yield_calls": int64(n.Yields)}},
	}
}
