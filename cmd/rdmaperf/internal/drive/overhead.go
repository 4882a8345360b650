package drive

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/transports"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// nullSession completes every operation in Post and answers every message: a sample on it is the loop's own share.
type nullSession struct {
	mem   []byte
	done  [2 * engine.LatencySlots]transports.Done
	n     int
	recvs [engine.LatencySlots]uint32
	taken int // receives used
}

func (s *nullSession) Local() []byte              { return s.mem }
func (s *nullSession) RemoteLen() uint64          { return uint64(len(s.mem)) }
func (s *nullSession) Wait(context.Context) error { return nil }
func (s *nullSession) Close() error               { return nil }

func (s *nullSession) PingPong([]transports.PingPongStep, []transports.Done) (int, error) {
	return 0, rdma.ErrNotSupported
}

func (s *nullSession) Post(ops []transports.Op) (int, error) {
	for i := range ops {
		op := &ops[i]
		if op.Kind == transports.KindRecv {
			continue // slots come round in order
		}
		s.done[s.n] = transports.Done{Slot: op.Slot, Kind: op.Kind}
		s.done[s.n+1] = transports.Done{Slot: s.recvs[s.taken%engine.LatencySlots], Kind: transports.KindRecv,
			Len: op.Len}
		s.n += 2
		s.taken++
	}
	return len(ops), nil
}

func (s *nullSession) Poll(dst []transports.Done) (int, error) {
	n := copy(dst, s.done[:s.n])
	s.n = 0
	return n, nil
}

const overheadTime = 50 * time.Millisecond

// loopOverhead is the median of the loop's own share of a round trip, in ns, not halved; 0 when not known.
var loopOverhead = sync.OnceValue(func() float64 { return MeasureOverhead(engine.Limits{Dur: overheadTime}) })

func MeasureOverhead(lim engine.Limits) float64 {
	sh := &engine.Shape{Point: engine.Point{Op: transports.KindSend.String(), Size: 64}, QPs: 1, Threads: 1, Depth: 1,
		RecvDepth: engine.LatencySlots, Moderation: 1, Slots: engine.LatencySlots, Polling: engine.PollingBusy,
		Arrival: engine.ArrivalMessage, Timeout: engine.DefaultTimeout}
	sh.Layout = PingPongLayout(sh)
	s := &nullSession{mem: make([]byte, sh.Window())}
	for i := range s.recvs {
		s.recvs[i] = uint32(i)
	}
	w := &pingPongWorker{Worker: engine.NewWorker(sh, engine.SideClient, -1)}
	l, err := newPingPongLane(w.Worker, engine.NewLane(s, sh, 0))
	if err != nil {
		return 0
	}
	defer l.ref.Free()
	w.lanes = []*pingPongLane{l}
	w.Rec, w.Lim, w.Stop = reports.NewRecorder(), lim, new(atomic.Uint32)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := w.each(1, messages.sample); err != nil {
		return 0
	}
	return w.Rec.Snapshot().P50
}
