package memdev

import (
	"time"

	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

var clockBase = time.Now()

func clock() int64 { return int64(time.Since(clockBase)) }

// PingPong takes steps of a ping-pong with the device's own post and poll.
func (q *qp) PingPong(steps []rdma.PingPongStep, dst []rdma.WC) (n int, err error) {
	if q.sendCQ != q.recvCQ || q.srq != nil || len(dst) == 0 {
		return 0, rdma.ErrInvalid
	}
	return rdma.Steps(q, q.sendCQ, steps, dst, clock, nil)
}
