package sched

import (
	"sync/atomic"

	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// tally counts what became of long sends, for reports.
type tally struct {
	agreed atomic.Int64
	alone  atomic.Int64
	cut    atomic.Int64
	whole  atomic.Int64
}

// Tally reads what became of the long sends of a tier with [CutSends] or
// [CutOrRefuseSends] so far, by names for reports; nil for any other device.
//
//	send_peers        connections whose peer cuts sends as well
//	send_peers_alone  connections whose peer does not, or cannot on that connection
//	sends_cut         sends that went in slices
//	sends_whole       sends that went whole, for want of such a peer, of a place or of a long receive
func Tally(dev rdma.Device) map[string]int64 {
	d, ok := dev.(*device)
	if !ok || !d.cutting {
		return nil
	}
	t := &d.tally
	return map[string]int64{"send_peers": t.agreed.Load(), "send_peers_alone": t.alone.Load(),
		"sends_cut": t.cut.Load(), "sends_whole": t.whole.Load()}
}

func (d *device) Counts() []rdma.Counts {
	below := rdma.CountsOf(d.below)
	if own := Tally(d); own != nil {
		return append([]rdma.Counts{{Layer: "sched", Values: own}}, below...)
	}
	return below
}

func (d *fifoDevice) Counts() []rdma.Counts { return rdma.CountsOf(d.Device) }
