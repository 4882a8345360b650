package daemon

import (
	"errors"
	"fmt"
	"time"

	"github.com/rdmaperf/rdmaperf/internal/onepeer"
	"github.com/rdmaperf/rdmaperf/transports/lite"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

func (c *conn) protocolError(what string, args ...any) {
	c.end(fmt.Errorf("%w: "+what, append([]any{rdma.ErrProtocol}, args...)...))
}

// turn takes requests and writes completions. waits is true while operations are outstanding, which polling completes.
func (c *conn) turn() (busy, waits bool) {
	defer onepeer.Recover(c.end)
	if p := c.queuePair.Load(); p > 0 && c.client.UseQueuePair(int(p)-1) == nil { // else it is busy
		c.queuePair.CompareAndSwap(p, 0)
	}
	before := c.ended
	seen := c.page.word(wordSeen).Load()
	used := c.ended - seen
	if used > depth {
		c.protocolError("it has seen %d ends of %d", seen, c.ended)
		return false, false
	}
	if n := c.page.word(wordPosted).Load() - c.taken; n > depth {
		c.protocolError("it has %d requests in a ring of %d", n, depth)
		return false, false
	} else if n > 0 {
		busy = c.requests(int(min(n, budget, uint32(max(depth-int(used)-c.outstanding, 0)))))
	}
	c.turns++
	c.operations()
	c.answers()
	c.messages()
	if c.ended != before {
		c.page.word(wordEnded).Store(c.ended)
		busy = true
		if a := c.page.word(wordAsleep); a.Load() != 0 {
			a.Store(0)
			wakeWord(c.page.word(wordEnded))
		}
	}
	return busy, c.next != c.first
}

// complete writes an end. There is room: no request was taken without.
func (c *conn) complete(d *end) {
	at := endsAt + int(c.ended%depth)*endLen
	d.put(c.page[at : at+endLen])
	c.ended++
}

// requests takes up to n requests. Consecutive one-sided operations are posted together.
func (c *conn) requests(n int) bool {
	from := c.taken
	for k := 0; k < n; {
		var r request
		run := 0
		for k+run < n && run < budget {
			at := requestsAt + int((c.taken+uint32(run))%depth)*requestLen
			if r.get(c.page[at : at+requestLen]); r.kind > kindCmpSwap {
				break
			}
			h := c.handle(r.handle)
			if h == 0 || !c.inPlace(r.local, r.len) {
				break
			}
			c.ops[run] = lite.Op{Kind: lite.OpKind(r.kind), Handle: h, Off: r.off, Local: c.base + r.local, Add: r.add,
				Swap: r.swap, Len: r.len, Slot: r.slot, Fence: r.flags&flagFence != 0}
			c.flight[(c.next+uint32(run))%depth] = flight{r.slot, r.kind}
			run++
		}
		if run > 0 {
			posted, err := c.client.Post(c.ops[:run])
			c.next += uint32(posted)
			c.taken += uint32(posted)
			c.outstanding += posted
			k += posted
			if err == nil {
				continue
			}
			if err == rdma.ErrQueueFull {
				break
			}
			at := requestsAt + int(c.taken%depth)*requestLen
			r.get(c.page[at : at+requestLen]) // the one that was refused
			c.refused(&r, err)
			k++
			continue
		}
		if !c.twoSided(&r) {
			break
		}
		k++
	}
	if c.taken != from {
		c.page.word(wordTaken).Store(c.taken)
	}
	return c.taken != from
}

func (c *conn) refused(r *request, err error) {
	c.taken++
	c.complete(&end{kind: r.kind, slot: r.slot, status: uint8(rdma.StatusLocQPOpErr), code: codeOf(err)})
}

func codeOf(err error) int32 {
	if c, ok := errors.AsType[lite.Code](err); ok {
		return int32(c)
	}
	return int32(lite.ErrFail)
}

// twoSided takes a request that is no one-sided operation, or that fails at once. False: it has no room yet.
func (c *conn) twoSided(r *request) bool {
	inPlace := c.inPlace(r.local, r.len)
	switch {
	case r.kind <= kindCmpSwap:
		if c.handle(r.handle) == 0 {
			c.refused(r, lite.ErrDeadHandle)
		} else {
			c.refused(r, lite.ErrMemory)
		}
		return true
	case r.kind >= numKinds:
		c.protocolError("request of the kind %d", r.kind)
		return false
	case r.kind != kindRecv && !inPlace, r.kind == kindRecv && !c.inPlace(r.local, r.room),
		r.kind == kindCall && !c.inPlace(r.off, r.room):
		c.refused(r, lite.ErrMemory)
		return true
	}
	switch r.kind {
	case kindCall:
		return c.call(r)
	case kindSend:
		return c.send(r)
	case kindRecv:
		if !c.open(r.port) {
			c.refused(r, lite.ErrNoPort)
			return true
		}
		c.recvs[r.port] = append(c.recvs[r.port], *r)
		c.outstanding++
		c.taken++
	case kindReply:
		c.reply(r)
		c.taken++
	}
	return true
}

func (c *conn) call(r *request) bool {
	for i := range c.calls {
		k := &c.calls[i]
		if k.busy {
			continue
		}
		p, err := c.client.Start(int(r.node), int(r.port), c.page[r.local:][:r.len])
		if err == rdma.ErrQueueFull {
			return false
		}
		if err != nil {
			c.refused(r, err)
			return true
		}
		*k = call{p: p, slot: r.slot, to: r.off, room: r.room, started: time.Now(), busy: true}
		c.taken++
		c.outstanding++
		return true
	}
	return false
}

func (c *conn) send(r *request) bool {
	err := c.client.PostMessage(int(r.node), int(r.port), uint32(r.handle)&0xffffff, c.base+r.local, r.len, r.slot,
		false, r.flags&flagFence != 0)
	switch err {
	case nil:
		c.flight[c.next%depth] = flight{r.slot, kindSend}
		c.next++
		c.taken++
		c.outstanding++
		return true
	case rdma.ErrQueueFull:
		return false
	}
	c.refused(r, err)
	return true
}

func (c *conn) operations() {
	if c.first == c.next {
		return
	}
	k, _ := c.client.Poll(c.done[:]) // it never fails
	for i := range c.done[:k] {
		f := &c.flight[c.first%depth]
		c.first++
		c.outstanding--
		d := &c.done[i]
		e := end{kind: f.kind, slot: f.slot, len: d.Len, status: uint8(d.Status)}
		if d.Status != rdma.StatusSuccess {
			e.code = int32(lite.ErrPeerDead)
		}
		c.complete(&e)
	}
}

// callTime bounds the wait for an answer; the client's own deadline is earlier.
const callTime = time.Minute

func (c *conn) answers() {
	for i := range c.calls {
		k := &c.calls[i]
		if !k.busy {
			continue
		}
		b, err := c.client.TryFinish(k.p)
		if err == lite.ErrWait {
			if c.turns%4096 == 0 && time.Since(k.started) > callTime && c.client.GiveUp(k.p) {
				err = lite.ErrTimeout
			} else {
				continue
			}
		}
		k.busy = false
		c.outstanding--
		e := end{kind: kindCall, slot: k.slot}
		if err != nil {
			e.code = codeOf(err)
		}
		if uint64(len(b)) > uint64(k.room) {
			e.code, b = int32(lite.ErrTooBig), nil
		}
		e.len = uint32(copy(c.page[k.to:], b))
		c.complete(&e)
	}
}
