package conform_test

import (
	"slices"
	"time"

	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// fourPriorities declares priorities on a device that ignores them.
func fourPriorities(c *rdma.Caps, _ int) { c.Priorities = 4 }

// backwards posts every list from its end.
func backwards(inner rdma.QP, wrs []rdma.SendWR) (int, error) {
	own := slices.Clone(wrs)
	slices.Reverse(own)
	return inner.PostSend(own)
}

// forgetQuiet drops unsignalled writes.
func forgetQuiet(inner rdma.QP, wrs []rdma.SendWR) (int, error) {
	for i := range wrs {
		if wrs[i].Op == rdma.OpWrite && wrs[i].Flags&rdma.Signaled == 0 {
			continue
		}
		if _, err := inner.PostSend(wrs[i : i+1]); err != nil {
			return i, err
		}
	}
	return len(wrs), nil
}

// skipRefused executes what follows a refused request.
func skipRefused(inner rdma.QP, wrs []rdma.SendWR) (int, error) {
	n, err := inner.PostSend(wrs)
	if err != nil && n+1 < len(wrs) {
		if _, err := inner.PostSend(wrs[n+1:]); err != nil {
			return n, err
		}
	}
	return n, err
}

// invalidateFirst moves local invalidations to the front of a list. They end
// unsignalled there, so that only the effect on the others can show.
func invalidateFirst(inner rdma.QP, wrs []rdma.SendWR) (int, error) {
	own := slices.Clone(wrs)
	slices.SortStableFunc(own, func(a, b rdma.SendWR) int {
		return b2i(a.Op != rdma.OpLocalInv) - b2i(b.Op != rdma.OpLocalInv)
	})
	return inner.PostSend(own)
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

// reverseReads executes the operations of a list backwards under their own IDs.
func reverseReads(inner rdma.QP, wrs []rdma.SendWR) (int, error) {
	own := slices.Clone(wrs)
	if len(own) > 1 && own[0].Op != rdma.OpSend {
		n := len(own)
		if own[n-1].Op == rdma.OpSend {
			n--
		}
		for i := range n {
			id, flags := own[i].ID, own[i].Flags
			own[i] = wrs[n-1-i]
			own[i].ID, own[i].Flags = id, flags
		}
	}
	return inner.PostSend(own)
}

// lastByteFirst shows the last byte of a write a while before the others.
func lastByteFirst(inner rdma.QP, wrs []rdma.SendWR) (int, error) {
	w := wrs[0]
	if w.Op != rdma.OpWrite || w.Len() < 2 {
		return inner.PostSend(wrs)
	}
	last, n := w, w.SGE[0].Len
	last.Flags = 0
	last.RemoteAddr += uint64(n - 1)
	last.SGE[0].Addr += uint64(n - 1)
	last.SGE[0].Len = 1
	if _, err := inner.PostSend([]rdma.SendWR{last}); err != nil {
		return 0, err
	}
	time.AfterFunc(time.Millisecond, func() { _, _ = inner.PostSend([]rdma.SendWR{w}) })
	return 1, nil
}
