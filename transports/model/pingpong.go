package model

import "github.com/rdmaperf/rdmaperf/transports/rdma"

// PingPong takes steps of a ping-pong, timed by the device's clock.
func (q *qp) PingPong(steps []rdma.PingPongStep, dst []rdma.WC) (n int, err error) {
	if q.send != q.recv || !q.own || len(dst) == 0 {
		return 0, rdma.ErrInvalid
	}
	return rdma.Steps(q, q.send, steps, dst, q.dev.clock.Now, q.byteSeen)
}

// byteSeen moves the clock to when the peer's write came, whose byte is there at once.
func (q *qp) byteSeen() {
	world.Lock()
	defer world.Unlock()
	q.dev.clock.Set(max(q.dev.clock.Now(), q.sink))
}
