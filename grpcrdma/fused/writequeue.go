package fused

import (
	"encoding/binary"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// Frames that several goroutines send at once leave together: a write is a system call, or a doorbell. A reader that
// woke several lets them run before it polls again, and the first that sends lets the others run, and writes for all. A
// reader never writes for others: it could wait for a peer whose reader does the same.

const (
	// writeQueueMax is how much may wait for a writer. Arbitrary: a fraction of a ring.
	writeQueueMax = 32 << 10
	// writeRounds is how many writes a sender makes before another goroutine goes on for the others. Arbitrary.
	writeRounds = 4
	// yieldTurns is how often a reader yields before it polls: once for the senders, once for the one who writes.
	yieldTurns = 2
)

type writeQueue struct {
	mu      sync.Mutex
	room    sync.Cond // on mu: pending was taken
	pending []byte    // whole frames
	spare   []byte    // pending's other buffer
	// gathering: a sender lets others run before it writes. writing: a sender writes while there is something.
	gathering, writing bool
	closed             bool          // the session is over
	helper             chan struct{} // closed when the goroutine that goes on is done; nil: there was none
	expiry             time.Time     // write deadline that is set

	lastUse atomic.Int64 // nanoseconds of the clock at the last write
	roused  atomic.Int32 // goroutines made runnable since the last write, who may send soon
}

// send writes one frame, or leaves it to a sender who is writing; then a failure is the session's end alone.
func (s *session) send(k kind, fl flags, id uint32, blocks []byte, total int, data []byte) error {
	o := &s.out
	long := len(data) > gatherMax || len(blocks) > maxBlocks
	o.mu.Lock()
	for o.writing && !o.closed && (long || len(o.pending) >= writeQueueMax) {
		o.room.Wait()
	}
	if o.closed {
		o.mu.Unlock()
		return notSent{s.cause()}
	}
	n := len(blocks) + len(data)
	if fl&fFirst != 0 {
		n += 4
	}
	if n > maxPayload {
		return s.sendParts(k, fl, id, blocks, total, data)
	}
	var h [headerLen]byte
	putHeader(h[:], n, k, fl, id)
	b := append(append(o.pending, h[:]...), blocks...)
	if fl&fFirst != 0 {
		b = binary.LittleEndian.AppendUint32(b, uint32(total))
	}
	if long {
		o.pending = b
		return s.flush(data)
	}
	o.pending = append(b, data...)
	switch {
	case o.writing, o.gathering && len(o.pending) < writeQueueMax:
		o.mu.Unlock()
		return nil
	case !o.gathering && o.roused.Load() > 1:
		o.gathering = true
		o.mu.Unlock()
		runtime.Gosched()
		o.mu.Lock()
		if !o.gathering { // one had to be written at once
			o.mu.Unlock()
			return nil
		}
	}
	return s.flush(nil)
}

// sendParts writes a frame whose payload is too long for one, with nothing between the parts. The caller holds out.mu,
// which it unlocks, and nobody else writes.
func (s *session) sendParts(k kind, fl flags, id uint32, blocks []byte, total int, data []byte) error {
	if fl&fFirst != 0 {
		blocks = binary.LittleEndian.AppendUint32(blocks, uint32(total))
	}
	all := append(blocks, data...)
	parts := make([]byte, 0, len(all)+(len(all)/maxPayload+1)*headerLen)
	var h [headerLen]byte
	for len(all) > maxPayload {
		putHeader(h[:], maxPayload, kindMore, 0, id)
		parts = append(append(parts, h[:]...), all[:maxPayload]...)
		all = all[maxPayload:]
	}
	putHeader(h[:], len(all), k, fl, id)
	return s.flush(append(append(parts, h[:]...), all...))
}

// flush writes what is pending, and then long. The caller holds out.mu, which it unlocks, and nobody else writes.
func (s *session) flush(long []byte) error {
	o := &s.out
	o.gathering, o.writing = false, true
	for round := 1; ; round++ {
		b := o.pending
		o.pending, o.spare = o.spare[:0], nil
		o.room.Broadcast()
		o.roused.Store(0)
		s.expect(time.Now())
		o.mu.Unlock()
		n, err := s.put(b, long)
		long = nil
		if err != nil {
			o.mu.Lock()
			o.closed = true
			s.unsent(b, n, err)
			s.unsent(o.pending, 0, err)
			o.mu.Unlock()
			s.fail(err)
		}
		o.mu.Lock()
		if cap(b) <= 2*writeQueueMax {
			o.spare = b[:0]
		}
		o.room.Broadcast()
		if err != nil || len(o.pending) == 0 {
			o.pending, o.writing = o.pending[:0], false
			o.mu.Unlock()
			if err != nil {
				return s.cause()
			}
			return nil
		}
		if round == writeRounds && !o.closed {
			done := make(chan struct{})
			o.helper = done
			o.mu.Unlock()
			go func() {
				defer close(done)
				o.mu.Lock()
				s.flush(nil)
			}()
			return nil
		}
	}
}

func (s *session) put(b, long []byte) (n int, err error) {
	switch {
	case long == nil:
		return s.conn.Write(b)
	case s.two != nil:
		return s.two.WriteTwo(b, long)
	}
	if n, err = s.conn.Write(b); err == nil {
		_, err = s.conn.Write(long)
	}
	return n, err
}

// notSent is the error of a call of which nothing was written, so that gRPC may retry it.
type notSent struct{ error }

func (e notSent) Unwrap() error { return e.error }

// unsent retracts the calls whose opening frame lies in b after the first n bytes, which were written.
func (s *session) unsent(b []byte, n int, err error) {
	if !s.client {
		return
	}
	for at := 0; at+headerLen <= len(b); {
		length, bad := payloadLen(b[at:])
		if bad != nil {
			return
		}
		if kind(b[at+4]) == kindStream && flags(b[at+5])&fOpen != 0 && at >= n {
			s.mu.Lock()
			id := binary.LittleEndian.Uint32(b[at+8:])
			st := s.streams[id]
			if st == nil {
				st = s.lost[id]
			}
			s.mu.Unlock()
			if st != nil {
				st.retract(notSent{unavailable(err)})
			}
		}
		at += headerLen + length
	}
}

// yield lets those run first, and send, that a reader woke. A client's only caller is left to another processor: with
// few calls the change of goroutines costs more than it saves.
func (s *session) yield() {
	o := &s.out
	if n := o.roused.Load(); n == 0 || s.client && n == 1 {
		return
	}
	for range yieldTurns {
		runtime.Gosched()
		o.mu.Lock()
		more := o.gathering
		o.mu.Unlock()
		if !more {
			break
		}
	}
	o.roused.Store(0)
}

func (s *session) drainWriteQueue() {
	o := &s.out
	o.mu.Lock()
	for o.writing && !o.closed {
		o.room.Wait()
	}
	if len(o.pending) > 0 && !o.writing {
		s.flush(nil)
		return
	}
	o.mu.Unlock()
}

// closeWriteQueue joins the goroutine that goes on with writing. The session has failed.
func (s *session) closeWriteQueue() {
	o := &s.out
	o.mu.Lock()
	o.closed = true
	o.room.Broadcast()
	helper := o.helper
	o.mu.Unlock()
	if helper != nil {
		<-helper
	}
}

// expect notes a use of the connection, and sometimes moves its write deadline. The caller holds out.mu.
func (s *session) expect(now time.Time) {
	o := &s.out
	o.lastUse.Store(now.UnixNano())
	if s.stall > 0 && o.expiry.Sub(now) < s.stall {
		o.expiry = now.Add(s.stall + s.stall/4)
		s.conn.SetWriteDeadline(o.expiry)
	}
}
