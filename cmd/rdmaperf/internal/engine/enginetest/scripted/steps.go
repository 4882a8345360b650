package scripted

import (
	"time"

	"github.com/rdmaperf/rdmaperf/transports"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// PingPong takes steps by Post and Poll, and times them by the bubble's clock.
func (s *session) PingPong(vs []transports.PingPongStep, dst []transports.Done) (n int, err error) {
	if !s.f.Steps {
		return 0, rdma.ErrNotSupported
	}
	for i := range vs {
		v := &vs[i]
		v.Met = false // of an earlier call
		if v.HasAsk {
			v.Start = time.Now().UnixNano()
			s.start(v.Ask)
			v.HasAsk = false
		}
		for looks := uint32(0); !v.Met; looks++ {
			if looks == v.Looks || len(dst)-n < 2 {
				return n, nil
			}
			if v.Until == rdma.UntilByte && rdma.LoadByte(s.mem.Bytes(), int(v.Watch)) != v.Was {
				v.Met = true
				break
			}
			k, _ := s.Poll(dst[n : n+1])
			if n += k; k == 0 {
				continue
			}
			d := &dst[n-1]
			switch {
			case v.Until == rdma.UntilSend && d.Kind != transports.KindRecv:
				v.Met = true
			case v.Until == rdma.UntilRecv && d.Kind == transports.KindRecv:
				if v.HasAnswer && (d.Slot != v.Slot || d.Len != v.Answer.Len || d.HasImm && d.Imm != v.Answer.Imm) {
					return n, nil
				}
				v.Met = true
			}
		}
		if v.HasAnswer {
			s.start(v.Answer)
			v.HasAnswer = false
		} else {
			v.Took = time.Now().UnixNano() - v.Start
		}
	}
	return n, nil
}
