package iwarp

import (
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// Who watches the last octet of a large write owns the memory from then on: what it
// writes there must not spoil a CRC that is still being computed.
func TestWatcherMayWriteBehindTheLastOctet(t *testing.T) {
	const size, rounds = 60_000, 100
	for name, cfg := range map[string]Config{"crc": {}, "nocrc": {NoCRC: true}} {
		t.Run(name, func(t *testing.T) {
			a, b := pair(t, cfg, rdma.QPConfig{SendDepth: 8, RecvDepth: 8, Access: rdma.RemoteWrite})
			a.fill(1, 0, size)
			a.bytes(0, size)[size-1] = 1
			var stop atomic.Bool
			var taken atomic.Int64
			polled, watched := make(chan struct{}), make(chan struct{})
			go func() { // drives the stack, as a background poller does
				defer close(polled)
				for !stop.Load() {
					b.qp.(*qp).poll()
					runtime.Gosched()
				}
			}()
			go func() {
				defer close(watched)
				for !stop.Load() {
					if w := b.bytes(0, size); w[size-1] == 1 {
						clear(w)
						taken.Add(1)
					}
				}
			}()
			defer func() { stop.Store(true); <-polled; <-watched }()
			for i := range int64(rounds) {
				a.post(a.remote(rdma.OpWrite, uint64(i), 0, size, b))
				a.want(nil, rdma.WCWrite, uint64(i), rdma.StatusSuccess)
				for begun := time.Now(); taken.Load() <= i; runtime.Gosched() {
					a.qp.(*qp).poll()
					if time.Since(begun) > testTimeout {
						t.Fatalf("write %d was never seen; the queue pair of the watcher is %v", i, b.qp.State())
					}
				}
			}
		})
	}
}
