package fused

import (
	"sync/atomic"
	"time"
)

// inline has the reader run the handler of a whole unary request that arrived alone, as waking a thread takes longer. A
// handler that takes long loses the reader's role to another goroutine.
type inline struct {
	ss    *serverSession
	next  *serverStream // the reader's: the call to run behind the frame at hand
	turns atomic.Uint64 // odd while a reader runs a handler; making it even takes the role
	timer *time.Timer   // polls the turns while there are any

	ticking atomic.Bool
	last    uint64 // turns at the last poll
}

const (
	// quickTime is up to what time a handler is quick: about what handing it to another thread costs.
	quickTime = 30 * time.Microsecond
	// byteTime is what a handler may take longer for each byte of its request: about what the byte took to arrive.
	byteTime = time.Nanosecond
	// strikes is how many handlers of a method in a row must be slow: one may have been interrupted.
	strikes = 4
	// slowCalls is how many calls of a slow method get a goroutine before it is tried again. Arbitrary.
	slowCalls = 500
	// lookEvery is half the time that a handler which blocks may hold up its connection, once in slowCalls.
	lookEvery = 2 * time.Millisecond
)

type pace struct {
	slow    atomic.Int32 // calls to come that get a goroutine
	strikes atomic.Int32
}

func (p *pace) quick() bool {
	if p == nil {
		return false
	}
	if p.slow.Load() > 0 {
		p.slow.Add(-1)
		return false
	}
	return true
}

func (p *pace) note(d time.Duration) {
	if d <= quickTime {
		p.strikes.Store(0)
	} else if p.strikes.Add(1) >= strikes {
		p.strikes.Store(0)
		p.slow.Store(slowCalls)
	}
}

func (p *pace) block() { p.slow.Store(slowCalls) }

func (ss *serverSession) readLoop() {
	for ss.cause() == nil {
		ss.read(ss.handle) // a failure ends the session
		call := ss.inline.next
		ss.inline.next = nil
		// More requests are here already: they need not wait for this one.
		if call != nil && ss.r.Buffered() == 0 {
			if !ss.inline.run(call) {
				return
			}
			continue
		}
		if call != nil {
			ss.start(call)
		}
		if ss.r.Buffered() == 0 {
			ss.yield() // what was started or woken runs on this processor before it polls again
		}
	}
	close(ss.readDone)
}

// run works on a call as the reader; it returns false when the role was lost meanwhile.
func (i *inline) run(call *serverStream) bool {
	i.ss.handlers.Add(1)
	defer i.ss.handlers.Done()
	turn := i.turns.Add(1)
	if !i.ticking.Swap(true) {
		i.timer.Reset(lookEvery)
	}
	call.st.turn = turn
	call.run()
	if !i.turns.CompareAndSwap(turn, turn+1) {
		call.pace.block()
		return false
	}
	call.pace.note(call.work)
	return true
}

// giveUp hands on the reader's role if the handler of st has it: it is about to wait for what only a reader brings.
func (i *inline) giveUp(st *stream) {
	turn := st.turn
	if st.turn = 0; turn != 0 && i.turns.CompareAndSwap(turn, turn+1) {
		go i.ss.readLoop()
	}
}

// poll takes the reader's role from a handler that lasted from one poll to the next. It stops when no handler runs.
func (i *inline) poll() {
	now := i.turns.Load()
	if now%2 == 1 && now != i.last {
		i.last = now
		i.timer.Reset(lookEvery)
		return
	}
	if now%2 == 1 && i.turns.CompareAndSwap(now, now+1) {
		go i.ss.readLoop()
	}
	i.ticking.Store(false)
	if i.turns.Load()%2 == 1 && !i.ticking.Swap(true) {
		i.timer.Reset(lookEvery)
	}
}
