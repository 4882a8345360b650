package daemon

import (
	"errors"
	"fmt"
	"time"

	"github.com/rdmaperf/rdmaperf/transports/lite"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// lied ends a client whose words make no sense.
func (g *guest) lied(what string, args ...any) {
	g.end(fmt.Errorf("%w: "+what, append([]any{rdma.ErrProtocol}, args...)...))
}

// turn takes requests, and tells of ends. waits: operations are on their way that only a
// look finds.
func (g *guest) turn() (busy, waits bool) {
	if p := g.pair.Load(); p > 0 && g.client.UseQueuePair(int(p)-1) == nil { // else it is busy
		g.pair.CompareAndSwap(p, 0)
	}
	before := g.ended
	seen := g.page.word(wordSeen).Load()
	used := g.ended - seen
	if used > depth {
		g.lied("it has seen %d ends of %d", seen, g.ended)
		return false, false
	}
	if n := g.page.word(wordPosted).Load() - g.taken; n > depth {
		g.lied("it has %d requests in a ring of %d", n, depth)
		return false, false
	} else if n > 0 {
		busy = g.requests(int(min(n, budget, uint32(max(depth-int(used)-g.out, 0)))))
	}
	g.turns++
	g.operations()
	g.answers()
	g.messages()
	if g.ended != before {
		g.page.word(wordEnded).Store(g.ended)
		busy = true
		if a := g.page.word(wordAsleep); a.Load() != 0 {
			a.Store(0)
			wakeWord(g.page.word(wordEnded))
		}
	}
	return busy, g.next != g.first
}

// tell writes an end. There is room: no request was taken without.
func (g *guest) tell(d *end) {
	at := endsAt + int(g.ended%depth)*endLen
	d.put(g.page[at : at+endLen])
	g.ended++
}

// requests takes up to n requests. One-sided operations that stand side by side are posted together.
func (g *guest) requests(n int) bool {
	from := g.taken
	for k := 0; k < n; {
		var r request
		run := 0
		for k+run < n && run < budget {
			at := requestsAt + int((g.taken+uint32(run))%depth)*requestLen
			if r.get(g.page[at : at+requestLen]); r.kind > kindCmpSwap {
				break
			}
			code := lite.Code(0)
			h, ok := g.handle(r.handle)
			if !ok {
				code = lite.ErrDeadHandle
			} else if !g.local(r.local, r.len) {
				code = lite.ErrMemory
			}
			if code != 0 {
				break
			}
			g.ops[run] = lite.Op{Kind: lite.OpKind(r.kind), Handle: h, Off: r.off, Local: g.base + r.local, Add: r.add, Swap: r.swap, Len: r.len,
				Slot: r.slot, Fence: r.flags&flagFence != 0}
			g.flight[(g.next+uint32(run))%depth] = flight{r.slot, r.kind}
			run++
		}
		if run > 0 {
			posted, err := g.client.Post(g.ops[:run])
			g.next += uint32(posted)
			g.taken += uint32(posted)
			g.out += posted
			k += posted
			if err == nil {
				continue
			}
			if err == rdma.ErrQueueFull {
				break
			}
			at := requestsAt + int(g.taken%depth)*requestLen
			r.get(g.page[at : at+requestLen]) // the one that was refused
			g.refused(&r, err)
			k++
			continue
		}
		if !g.other(&r) {
			break
		}
		k++
	}
	if g.taken != from {
		g.page.word(wordTaken).Store(g.taken)
	}
	return g.taken != from
}

// refused takes a request that fails at once.
func (g *guest) refused(r *request, err error) {
	g.taken++
	code := lite.ErrFail
	if c, ok := err.(lite.Code); ok {
		code = c
	}
	g.tell(&end{kind: r.kind, slot: r.slot, status: uint8(rdma.StatusLocQPOpErr), code: int32(code)})
}

// other takes a request that is no one-sided operation, or that fails at once. False: there
// is no room for it yet.
func (g *guest) other(r *request) bool {
	inPlace := g.local(r.local, r.len)
	switch {
	case r.kind <= kindCmpSwap:
		if _, ok := g.handle(r.handle); !ok {
			g.refused(r, lite.ErrDeadHandle)
		} else {
			g.refused(r, lite.ErrMemory)
		}
		return true
	case r.kind >= numKinds:
		g.lied("request of the kind %d", r.kind)
		return false
	case r.kind != kindRecv && !inPlace, r.kind == kindRecv && !g.local(r.local, r.room), r.kind == kindCall && !g.local(r.off, r.room):
		g.refused(r, lite.ErrMemory)
		return true
	}
	switch r.kind {
	case kindCall:
		return g.call(r)
	case kindSend:
		return g.send(r)
	case kindRecv:
		if !g.open(r.port) {
			g.refused(r, lite.ErrNoPort)
			return true
		}
		g.recvs[r.port] = append(g.recvs[r.port], *r)
		g.out++
		g.taken++
	case kindReply:
		g.reply(r)
		g.taken++
	}
	return true
}

func (g *guest) call(r *request) bool {
	for i := range g.calls {
		c := &g.calls[i]
		if c.busy {
			continue
		}
		p, err := g.client.Start(int(r.node), int(r.port), g.page[r.local:][:r.len])
		if err == rdma.ErrQueueFull {
			return false
		}
		if err != nil {
			g.refused(r, err)
			return true
		}
		*c = call{p: p, slot: r.slot, to: r.off, room: r.room, started: time.Now(), busy: true}
		g.taken++
		g.out++
		return true
	}
	return false
}

func (g *guest) send(r *request) bool {
	err := g.client.PostMessage(int(r.node), int(r.port), uint32(r.handle)&0xffffff, g.base+r.local, r.len, r.slot, false, r.flags&flagFence != 0)
	switch err {
	case nil:
		g.flight[g.next%depth] = flight{r.slot, kindSend}
		g.next++
		g.taken++
		g.out++
		return true
	case rdma.ErrQueueFull:
		return false
	}
	g.refused(r, err)
	return true
}

// operations tells of one-sided operations and messages that ended.
func (g *guest) operations() {
	if g.first == g.next {
		return
	}
	k, _ := g.client.Poll(g.done[:]) // it never fails
	for i := range g.done[:k] {
		f := &g.flight[g.first%depth]
		g.first++
		g.out--
		d := &g.done[i]
		e := end{kind: f.kind, slot: f.slot, len: d.Len, status: uint8(d.Status)}
		if d.Status != rdma.StatusSuccess {
			e.code = int32(lite.ErrPeerDead)
		}
		g.tell(&e)
	}
}

// callTime is how long a call is waited for. Arbitrary: the client gives up earlier.
const callTime = time.Minute

// answers tells of calls that are answered.
func (g *guest) answers() {
	for i := range g.calls {
		c := &g.calls[i]
		if !c.busy {
			continue
		}
		b, err := g.client.TryFinish(c.p)
		if err == lite.ErrWait {
			if g.turns%4096 == 0 && time.Since(c.started) > callTime && g.client.GiveUp(c.p) {
				err = lite.ErrTimeout
			} else {
				continue
			}
		}
		c.busy = false
		g.out--
		e := end{kind: kindCall, slot: c.slot}
		var code lite.Code
		if errors.As(err, &code) {
			e.code = int32(code)
		} else if err != nil {
			e.code = int32(lite.ErrFail)
		}
		if uint64(len(b)) > uint64(c.room) {
			e.code, b = int32(lite.ErrTooBig), nil
		}
		e.len = uint32(copy(g.page[c.to:], b))
		g.tell(&e)
	}
}
