package suite

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/rdmaperf/rdmaperf/softstack/wiretest"
	"github.com/rdmaperf/rdmaperf/softstack/wiretest/target"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

type app struct {
	*target.Ready
	t      *trial
	v      *target.Client
	shadow []byte              // what the arena has to hold
	slack  [][2]int            // parts of it that may hold anything
	recvs  int                 // posted
	taken  int                 // receives that completed with success
	posted map[uint64]bool     // outstanding requests; true: it may be done although the stream ended
	seen   []target.Completion // not yet asked for
	joined bool                // the connection is there
	ended  bool                // and it has to end
}

// Sizes of a stage, as rping's: its receives take a message of 16 octets.
const (
	appRecvs = 4
	settleIn = 5 * time.Second // a QP whose stream has ended is in ERR, and all is flushed
)

func (t *trial) stage(o target.Stage) *app {
	t.settle()
	o.WaitMS = cmp.Or(o.WaitMS, int(max(time.Until(t.end), time.Second).Milliseconds()))
	r, err := t.target.Stage(o)
	if errors.Is(err, target.ErrUnsupported) {
		t.Lacks(err.Error())
	}
	t.Stop(err)
	a := &app{Ready: r, t: t, v: t.target, shadow: target.Canaries(), recvs: o.Recvs, posted: map[uint64]bool{}}
	if len(a.shadow) != r.Arena {
		t.Stop(fmt.Errorf("the target's arena has %d octets, want %d", r.Arena, len(a.shadow)))
	}
	for i, p := range o.Post {
		a.posted[uint64(target.FirstPost+i)] = handedOver(p.Op)
	}
	// What was received and not delivered may lie in receives: that is no harm.
	recvs := r.Regions[target.Receives]
	a.loose(recvs.Off, recvs.Len)
	t.last = a
	return a
}

func plainStage() target.Stage {
	return target.Stage{Recvs: appRecvs, RecvLen: helloLen, IRD: depth, ORD: depth}
}

// region is memory of the target; the case ends where the device has none of that kind.
func (a *app) region(name string) target.Region {
	r, ok := a.Regions[name]
	if !ok {
		a.t.Lacks("the device has no memory that is " + name)
	}
	return r
}

func (a *app) placed(r target.Region, at int, b []byte) { copy(a.shadow[r.Off+at:], b) }
func (a *app) loose(off, n int)                         { a.slack = append(a.slack, [2]int{off, off + n}) }

// delivered requires the next receive complete, with n octets.
func (a *app) delivered(n int) target.Completion {
	c := a.next(uint64(a.taken + 1))
	if int(c.Len) != n {
		a.t.Fail(fmt.Sprintf("receive %d has %d octets", c.ID, c.Len), fmt.Sprintf("%d octets", n))
	}
	a.taken++
	return c
}

func (a *app) done(id uint64) target.Completion {
	delete(a.posted, id)
	return a.next(id)
}

func (a *app) next(id uint64) target.Completion {
	send := id >= target.FirstPost
	for {
		for i, c := range a.seen {
			if (c.ID >= target.FirstPost) != send {
				continue
			}
			if c.ID != id || !c.Good() {
				a.t.Fail("the peer's application sees completions "+names(a.seen),
					fmt.Sprintf("the success of its request %d", id))
			}
			a.seen = slices.Delete(a.seen, i, i+1)
			return c
		}
		got, err := a.v.Completions(1, a.left())
		a.t.Stop(err)
		if len(got) == 0 {
			a.t.Fail("the peer's application sees completions "+names(a.seen),
				fmt.Sprintf("the success of its request %d, in time", id))
		}
		a.seen = append(a.seen, got...)
	}
}

func (a *app) left() time.Duration { return max(time.Until(a.t.end), 100*time.Millisecond) }

func (a *app) post(p target.Post) uint64 {
	a.join()
	id, err := a.v.Post(p)
	if errors.Is(err, target.ErrUnsupported) {
		a.t.Lacks(err.Error())
	}
	a.t.Stop(err)
	a.posted[id] = handedOver(p.Op)
	return id
}

// handedOver reports whether an operation is done when TCP has it (RFC 5040 §5.5).
func handedOver(op rdma.Opcode) bool { return !op.Responds() }

func (a *app) join() {
	if a.joined {
		return
	}
	j, err := a.v.Joined(a.left())
	a.t.Stop(err)
	if j.Pending || j.Error != "" {
		a.t.Fail(fmt.Sprintf("the peer's application has no connection: %s", j.Error), "a connection at both ends")
	}
	a.joined = true
}

// settle judges what the last connection left at the target: memory, and the QP's end where the stream had to end.
func (t *trial) settle() {
	a := t.last
	if a == nil {
		return
	}
	t.last = nil
	if a.ended {
		a.flushed()
	}
	got, err := a.v.Memory(a.shadow)
	t.Stop(err)
	if got == nil {
		return
	}
	for _, s := range a.slack {
		copy(got[s[0]:s[1]], a.shadow[s[0]:s[1]])
	}
	if !bytes.Equal(got, a.shadow) {
		t.Fail(a.differ(got), "memory of the peer as it was, but for what was written by right")
	}
}

func (a *app) differ(got []byte) string {
	first, last := -1, 0
	for i := range got {
		if got[i] != a.shadow[i] {
			if first < 0 {
				first = i
			}
			last = i
		}
	}
	where := "outside every region"
	for name, r := range a.Regions {
		if name != target.Freed && first >= r.Off && first < r.Off+r.Len {
			where = fmt.Sprintf("at octet %d of %q", first-r.Off, name)
		}
	}
	return fmt.Sprintf("octets %d to %d of the peer's memory changed, %s", first, last, where)
}

// flushed requires the QP in ERR, and every request that was left complete, once, without
// success. A send may have been handed to TCP before (RFC 5040 §5.5).
func (a *app) flushed() {
	j, err := a.v.Joined(a.left())
	a.t.Stop(err)
	if j.Error != "" || j.Pending {
		return // it never was connected
	}
	state := ""
	for stop := time.Now().Add(settleIn); state != rdma.QPErr.String(); time.Sleep(pollPause / 10) {
		state, err = a.v.State()
		a.t.Stop(err)
		if time.Now().After(stop) {
			a.t.Fail(fmt.Sprintf("the QP is in %s %v after its stream has ended", state, settleIn), "the QP in ERR")
		}
	}
	want := a.recvs - a.taken + len(a.posted)
	got, err := a.v.Completions(want-len(a.seen), settleIn)
	a.t.Stop(err)
	got = append(a.seen, got...)
	seen := map[uint64]bool{}
	for _, c := range got {
		may, send := a.posted[c.ID]
		if seen[c.ID] || !send && (c.ID <= uint64(a.taken) || c.ID > uint64(a.recvs)) || c.Good() && !may {
			a.t.Fail("completions after the end: "+names(got),
				"every request that was left completes once, and no receive with success")
		}
		seen[c.ID] = true
	}
	if len(got) != want {
		a.t.Fail(fmt.Sprintf("%d completions after the end: %s", len(got), names(got)),
			fmt.Sprintf("%d: every request that was left completes", want))
	}
}

func names(all []target.Completion) string {
	var each []string
	for _, c := range all {
		each = append(each, fmt.Sprintf("%d %s", c.ID, c.Status))
	}
	return cmp.Or(strings.Join(each, ", "), "none")
}

func (t *trial) called(o target.Stage) *link {
	host, err := hostFacing(t.addr)
	t.Stop(err)
	s, err := wiretest.ListenAt(host, max(time.Until(t.end), time.Millisecond))
	t.Stop(err)
	defer s.Close()
	o.Connect = s.Addr()
	a := t.stage(o)
	p, err := s.Accept()
	if err != nil {
		j, _ := t.target.Joined(0)
		t.Fail(fmt.Sprintf("nobody connects: %v, %+v", err, j), "a TCP connection of the peer")
	}
	l := t.link(p, a)
	if l.req, err = l.ReadStartup(); err != nil || l.req.Reply {
		t.Fail(fmt.Sprintf("%+v, %v", l.req, err), "a Request")
	}
	return l
}

// hostFacing is our address on the way to a peer. No packet is sent.
func hostFacing(addr string) (string, error) {
	c, err := net.Dial("udp", addr)
	if err != nil {
		return "", err
	}
	defer c.Close()
	host, _, err := net.SplitHostPort(c.LocalAddr().String())
	return host, err
}
