package mesh

import (
	"fmt"

	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// fault is a failed completion as an error that names the rank. A flushed request says only
// that its queue pair had ended before, so what the device has to say of that is next to it.
func (m *Mesh) fault(p *peer, wc *rdma.WC) error {
	err := fmt.Errorf("rank %d: %w", p.rank, &rdma.StatusError{WC: *wc})
	if wc.Status != rdma.StatusWRFlushErr {
		return err
	}
	for ev, some := m.dev.Event(); some; ev, some = m.dev.Event() {
		switch {
		case ev.QPNum != p.qp.Num():
		case ev.Detail != 0:
			return fmt.Errorf("%w; its queue pair: %s, code 0x%04x", err, ev.Type, ev.Detail)
		default:
			return fmt.Errorf("%w; its queue pair: %s", err, ev.Type)
		}
	}
	return err
}
