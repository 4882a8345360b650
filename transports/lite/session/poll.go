package session

import (
	"fmt"

	"github.com/rdmaperf/rdmaperf/transports"
	"github.com/rdmaperf/rdmaperf/transports/lite"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

func (x *session) Poll(dst []transports.Done) (n int, err error) {
	if x.err != nil {
		return 0, x.err
	}
	// In turns, so that with room for one neither kind starves the other.
	if x.turn = !x.turn; x.turn {
		n = x.pollReceives(dst, x.pollPosted(dst, 0))
	} else {
		n = x.pollPosted(dst, x.pollReceives(dst, 0))
	}
	if n > 0 || len(dst) == 0 {
		x.idle = 0
		return n, nil
	}
	x.idle++
	if x.gone == nil {
		x.gone = x.user.Idle(x.idle, x.peer, x.far)
	}
	if x.gone != nil {
		return x.flush(dst)
	}
	return 0, nil
}

func (x *session) pollPosted(dst []transports.Done, n int) int {
	for _, u := range x.users {
		for n < len(dst) {
			k, _ := u.Poll(x.done[:min(len(x.done), len(dst)-n)]) // it never fails
			for i := range x.done[:k] {
				dst[n] = doneOf(&x.done[i])
				n++
			}
			if k == 0 {
				break
			}
		}
	}
	return n
}

func (x *session) pollReceives(dst []transports.Done, n int) int {
	if x.head == x.tail || n == len(dst) {
		x.user.Progress()
		return n
	}
	for n < len(dst) && x.head != x.tail && x.gone == nil {
		i := x.head & uint32(len(x.recvs)-1)
		q := &x.recvs[i]
		size, err := x.user.Receive(int(i), x.win[q.off:][:q.len])
		d := transports.Done{Slot: q.slot, Len: uint32(size), Kind: transports.KindRecv}
		switch err {
		case nil:
		case lite.ErrTooBig:
			d.Status, d.Len = rdma.StatusLocLenErr, 0
		case lite.ErrEmpty:
			return n
		default:
			x.gone = err
			return n
		}
		x.head++
		dst[n] = d
		n++
	}
	return n
}

// flush completes receives of a session that the peer ended. The Poll after that has the error.
func (x *session) flush(dst []transports.Done) (n int, err error) {
	for n < len(dst) && x.head != x.tail {
		q := x.recvs[x.head&uint32(len(x.recvs)-1)]
		x.head++
		dst[n] = transports.Done{Slot: q.slot, Kind: transports.KindRecv, Status: rdma.StatusWRFlushErr}
		n++
	}
	if n > 0 {
		return n, nil
	}
	for _, u := range x.users {
		if u.Pending() > 0 {
			return 0, nil
		}
	}
	x.err = fmt.Errorf("session with node %d: %w: %w", x.peer, rdma.ErrUnreachable, x.gone)
	return 0, x.err
}
