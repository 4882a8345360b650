package conform_test

import (
	"slices"
	"time"

	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

func fourPriorities(c *rdma.Caps) { c.Priorities = 4 }

func prioritized(post func(inner rdma.QP, wrs []rdma.SendWR) (int, error)) func(*bend) {
	return func(b *bend) {
		onCaps(fourPriorities)(b)
		b.send = post
	}
}

func backwards(inner rdma.QP, wrs []rdma.SendWR) (int, error) {
	own := slices.Clone(wrs)
	slices.Reverse(own)
	return inner.PostSend(own)
}

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

// onwards executes what follows a refused request.
func onwards[Q, W any](post func(Q, []W) (int, error)) func(Q, []W) (int, error) {
	return func(inner Q, wrs []W) (int, error) {
		n, err := post(inner, wrs)
		if err != nil && n+1 < len(wrs) {
			if _, err := post(inner, wrs[n+1:]); err != nil {
				return n, err
			}
		}
		return n, err
	}
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
