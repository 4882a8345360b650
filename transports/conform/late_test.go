package conform_test

import (
	"sync"
	"testing"

	"github.com/rdmaperf/rdmaperf/transports/conform"
	"github.com/rdmaperf/rdmaperf/transports/memdev"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

const latePolls = 4

// lateness holds back the send completions of one CQ. A message may have been
// received long before its acknowledgement is back.
type lateness struct {
	mu    sync.Mutex
	polls int
	count int       // of held completions, ever
	held  []rdma.WC // oldest first
	due   []int     // the poll that gives them out
}

func (l *lateness) poll(inner rdma.CQ, dst []rdma.WC) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.polls++
	n := l.release(dst)
	k, err := inner.Poll(dst[n:])
	fresh := append([]rdma.WC(nil), dst[n:n+k]...)
	for i := range fresh {
		switch wc := &fresh[i]; {
		case wc.Status != rdma.StatusSuccess:
			// Nothing that succeeded comes behind it.
			for i := range l.due {
				l.due[i] = l.polls
			}
			l.held, l.due = append(l.held, *wc), append(l.due, l.polls)
		case wc.Opcode.IsRecv():
			dst[n] = *wc
			n++
		default:
			l.count++
			l.held, l.due = append(l.held, *wc), append(l.due, l.polls+l.count%(latePolls+1))
		}
	}
	n += l.release(dst[n:])
	if n > 0 {
		err = nil
	}
	return n, err
}

func (l *lateness) release(dst []rdma.WC) (n int) {
	for ; n < len(dst) && len(l.held) > 0 && l.due[0] <= l.polls; n++ {
		dst[n] = l.held[0]
		l.held, l.due = l.held[1:], l.due[1:]
	}
	return n
}

func TestLateAcknowledgementsPass(t *testing.T) {
	t.Parallel()
	var queues sync.Map
	h := bentMem(func(b *bend) {
		b.poll = func(inner rdma.CQ, dst []rdma.WC) (int, error) {
			l, _ := queues.LoadOrStore(inner, new(lateness))
			return l.(*lateness).poll(inner, dst)
		}
	}, memdev.Config{Seed: 3})
	passes(t, h, conform.Options{Seed: 3,
		Only: []string{"snd", "srq", "rdw", "rdr", "imm", "wim", "inl", "ord", "fen", "inv", "atm", "lrg"},
		Skip: []string{"inv/solicited"}}) // an event says that a completion can be polled at once
}
