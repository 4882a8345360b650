package mesh

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// A rank whose queue pair was ended by a fault of its peer names the rank and the fault, and
// not only that its own requests were flushed.
func TestAFlushedRankSaysWhy(t *testing.T) {
	providers(t, func(t *testing.T, open func(rank int) (rdma.Device, error)) {
		joined := make(chan struct{})
		ranks(t, 2, open, short, func(ctx context.Context, m *Mesh, _ rdma.Device) error {
			p := m.peers[1-m.cfg.Rank]
			if m.cfg.Rank == 0 {
				close(joined)
			} else {
				select {
				case <-joined:
				case <-ctx.Done():
					return ctx.Err()
				}
				wr := rdma.SendWR{ID: uint64(p.rank)<<32 | whatQuiet<<24, Op: rdma.OpWrite, RemoteAddr: 4096,
					RKey: 0xdead00, NumSGE: 1}
				wr.SGE[0] = rdma.SGE{Addr: m.buf.Addr(), Len: 64, LKey: m.mr.LKey()}
				if _, err := p.qp.PostSend([]rdma.SendWR{wr}); err != nil {
					return err
				}
			}
			err := m.Barrier(ctx)
			if err == nil { // the other's message of it had come before the fault did
				err = m.Barrier(ctx)
			}
			if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("rank %d: ", p.rank)) ||
				!strings.Contains(err.Error(), "access") {
				return fmt.Errorf("barrier behind a write to nobody's memory: %v, want the rank and an access error", err)
			}
			var status *rdma.StatusError
			if !errors.As(err, &status) {
				return fmt.Errorf("no status in %w", err)
			}
			t.Logf("rank %d: %v", m.cfg.Rank, err)
			return nil
		})
	})
}
