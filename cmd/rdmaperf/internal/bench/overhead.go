package bench

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/transports"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// nullSession is a session without a transport: every operation is complete when
// Post returns, and every message is answered into the oldest receive. What a
// sample takes on it is the loop's own share: clock, post, poll and bookkeeping.
type nullSession struct {
	mem   []byte
	done  [2 * latencySlots]transports.Done
	n     int
	recvs [latencySlots]uint32
	taken int // receives used
}

func (s *nullSession) Local() []byte              { return s.mem }
func (s *nullSession) RemoteLen() uint64          { return uint64(len(s.mem)) }
func (s *nullSession) Wait(context.Context) error { return nil }
func (s *nullSession) Close() error               { return nil }

func (s *nullSession) Volley([]transports.Volley, []transports.Done) (int, error) {
	return 0, rdma.ErrNotSupported
}

func (s *nullSession) Post(ops []transports.Op) (int, error) {
	for i := range ops {
		op := &ops[i]
		if op.Kind == transports.KindRecv {
			continue // slots come round in order
		}
		s.done[s.n] = transports.Done{Slot: op.Slot, Kind: op.Kind}
		s.done[s.n+1] = transports.Done{Slot: s.recvs[s.taken%latencySlots], Kind: transports.KindRecv, Len: op.Len}
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

// overheadTime is how long the loop is measured, once in a process.
const overheadTime = 50 * time.Millisecond

// loopOverhead is the median of what the latency loop itself puts into one round
// trip, in ns, not halved. 0 when it could not be measured.
var loopOverhead = sync.OnceValue(func() float64 { return measureOverhead(limits{dur: overheadTime}) })

func measureOverhead(lim limits) float64 {
	sh := &Shape{Point: Point{Workload: WorkloadLatency, Op: transports.KindSend.String(), Size: 64}, QPs: 1, Threads: 1, Depth: 1,
		RecvDepth: latencySlots, Moderation: 1, Slots: latencySlots, Polling: PollingBusy, Arrival: ArrivalMessage, Timeout: DefaultTimeout}
	s := &nullSession{mem: make([]byte, sh.window())}
	for i := range s.recvs {
		s.recvs[i] = uint32(i)
	}
	l, err := newLane(s, sh, 0)
	if err != nil {
		return 0
	}
	defer l.close()
	w := newWorker(sh, sideClient, -1)
	w.lanes, w.rec, w.lim, w.stop = []*lane{l}, reports.NewRecorder(), lim, new(atomic.Uint32)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := w.each(1, messages.sample); err != nil {
		return 0
	}
	return w.rec.Snapshot().P50
}
