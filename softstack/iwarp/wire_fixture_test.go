package iwarp

import (
	"bytes"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rdmaperf/rdmaperf/softstack/mpa"
	"github.com/rdmaperf/rdmaperf/softstack/rdmap"
	"github.com/rdmaperf/rdmaperf/softstack/wiretest"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// mode is how the device under test is placed and driven.
type mode struct {
	name      string
	initiator bool   // the device connects to the scripted peer
	polled    bool   // its application polls; else the background goroutine does everything
	cfg       Config // of the device
	markers   bool   // the scripted peer wants markers
}

var modes = []mode{
	{name: "responder"},
	{name: "initiator/polled", initiator: true, polled: true},
	{name: "responder/polled/checked", polled: true, cfg: Config{StoreAndForward: true}},
	{name: "initiator/markers", initiator: true, cfg: Config{Markers: true}, markers: true},
}

// The arena of a device under test, with canaries everywhere between.
const (
	guard     = 4096
	targetOff = guard
	targetLen = 64 << 10
	smallLen  = 4096
	quietOff  = targetOff + targetLen + guard // no remote rights
	farOff    = quietOff + smallLen + guard   // another domain
	invOff    = farOff + smallLen + guard     // the peer may invalidate it
	recvOff   = invOff + smallLen + guard     // receives and the sink of the read
	recvLen   = 80 << 10
	arenaLen  = recvOff + recvLen + guard

	recvCap = 64   // octets a receive takes, at recvCap*2 from each other
	sinkOff = 2048 // of the read's sink in the receive region
	sinkLen = 16

	readID, sendID         = 101, 102
	lateRecvID, lateSendID = 90, 190 // posted in ERR
	peerDepth              = 4       // IRD and ORD of the scripted peer
)

// canaries is what every arena holds at first.
var canaries = func() []byte {
	b := make([]byte, arenaLen)
	for i := range b {
		b[i] = byte(i*7 + i>>8)
	}
	return b
}()

// dut is a device under test: one QP that faces a scripted peer, and one bystander connection that must not notice.
type dut struct {
	t    *testing.T
	mode mode
	dev  *Device
	cq   rdma.CQ
	q    *qp
	l    rdma.Listener
	peer *wiretest.Peer

	arena  rdma.Buffer
	shadow []byte   // what the arena must hold in the end
	slack  [][2]int // ranges of it that may hold anything

	target, quiet, far, inv, rx *mr
	freed                       uint32 // the STag of a closed registration

	by, friend *end

	msn   uint32 // of the peer's next Send
	recvs int    // posted receives, numbered from 1
	bare  bool

	mu   sync.Mutex
	wcs  []rdma.WC
	quit atomic.Bool
	wg   sync.WaitGroup
}

// dutOptions are what a row wants to be different.
type dutOptions struct {
	cfg     func(*Config)
	frame   func(*mpa.Frame) // the peer's startup frame
	bare    bool             // no read and fenced send outstanding
	recvs   int              // posted receives; 0 means 4, negative none
	recvCap int              // octets each; 0 means recvCap
}

func newDUT(t *testing.T, m mode, o dutOptions) *dut {
	t.Helper()
	d := &dut{t: t, mode: m, msn: 1, bare: o.bare}
	cfg := m.cfg
	if o.cfg != nil {
		o.cfg(&cfg)
	}
	d.dev = need(Open(cfg))(t)
	d.arena = need(rdma.Alloc(arenaLen))(t)
	d.shadow = bytes.Clone(canaries)
	copy(d.arena.Bytes(), canaries)
	other := need(d.dev.AllocPD())(t)
	all := rdma.LocalWrite | rdma.RemoteWrite | rdma.RemoteRead
	d.target = d.region(0, targetOff, targetLen, all|rdma.RemoteAtomic)
	d.quiet = d.region(0, quietOff, smallLen, rdma.LocalWrite)
	d.far = d.region(other, farOff, smallLen, all|rdma.RemoteInvalidate)
	d.inv = d.region(0, invOff, smallLen, all|rdma.RemoteInvalidate)
	d.rx = d.region(0, recvOff, recvLen, rdma.LocalWrite)
	gone := d.region(0, targetOff, targetLen, all)
	d.freed = gone.RKey()
	must(t, gone.Close())

	d.cq = need(d.dev.NewCQ(64))(t)
	q := need(d.dev.NewQP(rdma.QPConfig{SendCQ: d.cq, RecvCQ: d.cq, SendDepth: 16, RecvDepth: 64}))(t)
	d.q = q.(*qp)
	d.l = need(d.dev.Listen(t.Context(), "127.0.0.1:0", 4))(t)
	if o.recvs == 0 {
		o.recvs = 4
	}
	if o.recvCap == 0 {
		o.recvCap = recvCap
	}
	d.recvs = max(o.recvs, 0)
	for i := range d.recvs {
		need(d.q.PostRecv([]rdma.RecvWR{{ID: uint64(i + 1), NumSGE: 1, SGE: [4]rdma.SGE{d.recvSGE(i, o.recvCap)}}}))(t)
	}
	d.by, d.friend = newEndOn(t, d.dev, rdma.QPConfig{}), newEnd(t, Config{}, rdma.QPConfig{})
	join(t, d.friend, d.by)
	d.connect(o)
	if m.polled {
		d.wg.Go(d.pollLoop)
	}
	t.Cleanup(d.close)
	return d
}

func (d *dut) region(pd rdma.PD, off, n int, a rdma.Access) *mr {
	d.t.Helper()
	must(d.t, d.dev.usePD(pd, 1))
	m := &mr{dev: d.dev, buf: d.arena.Bytes()[off : off+n : off+n], base: d.arena.Addr() + uint64(off), pd: pd,
		access: a}
	m.valid.Store(true)
	must(d.t, d.dev.keys.add(m))
	return m
}

func (d *dut) recvSGE(i, n int) rdma.SGE {
	return rdma.SGE{Addr: d.rx.Addr() + uint64(i*recvCap*2), Len: uint32(n), LKey: d.rx.LKey()}
}

// connect makes the connection and, unless bare, leaves a read and a send fenced behind it outstanding.
func (d *dut) connect(o dutOptions) {
	d.t.Helper()
	f := &mpa.Frame{Rev: 2, CRC: true, Markers: d.mode.markers, Enhanced: true,
		Enh: mpa.Enhanced{IRD: peerDepth, ORD: peerDepth}}
	f.Reply = d.mode.initiator
	if o.frame != nil {
		o.frame(f)
	}
	var errs chan error
	param := rdma.ConnParam{IRD: peerDepth, ORD: 16}
	var err error
	if d.mode.initiator {
		s := need(wiretest.Listen(testTimeout))(d.t)
		defer s.Close()
		errs = (&end{qp: d.q}).connecting(d.t, s.Addr(), param)
		d.peer = need(s.Accept())(d.t)
		_, err = d.peer.Respond(f)
	} else {
		errs = (&end{qp: d.q}).accept(d.l, param)
		d.peer = need(wiretest.Dial(d.l.Addr(), testTimeout))(d.t)
		_, err = d.peer.Initiate(f)
	}
	must(d.t, err)
	must(d.t, <-errs)
	d.peer.Check.ORD = peerDepth
	if !o.bare {
		need(d.q.PostSend([]rdma.SendWR{
			{ID: readID, Op: rdma.OpRead, Flags: rdma.Signaled, NumSGE: 1, SGE: [4]rdma.SGE{d.sink()}, RKey: 0x77,
				RemoteAddr: 0x7000},
			{ID: sendID, Op: rdma.OpSend, Flags: rdma.Fence | rdma.Signaled},
		}))(d.t)
	}
}

func (d *dut) sink() rdma.SGE {
	return rdma.SGE{Addr: d.rx.Addr() + sinkOff, Len: sinkLen, LKey: d.rx.LKey()}
}

func (d *dut) pollLoop() {
	var wcs [16]rdma.WC
	for !d.quit.Load() {
		d.poll(wcs[:])
		time.Sleep(20 * time.Microsecond) // two cores for everybody; still far above busyPolls
	}
}

func (d *dut) poll(dst []rdma.WC) {
	d.mu.Lock()
	defer d.mu.Unlock()
	n, _ := d.cq.Poll(dst)
	d.wcs = append(d.wcs, dst[:n]...)
}

// completions waits for n completions since the last call and returns all there are.
func (d *dut) completions(n int) []rdma.WC {
	d.t.Helper()
	var buf [16]rdma.WC
	for stop := time.Now().Add(testTimeout); ; time.Sleep(50 * time.Microsecond) {
		if !d.mode.polled {
			d.poll(buf[:])
		}
		d.mu.Lock()
		if len(d.wcs) >= n || time.Now().After(stop) {
			out := d.wcs
			d.wcs = nil
			d.mu.Unlock()
			if len(out) < n {
				d.t.Fatalf("%d completions in time, want %d: %+v", len(out), n, out)
			}
			return out
		}
		d.mu.Unlock()
	}
}

// eventually waits for a condition that needs no poll.
func eventually(t testing.TB, what string, cond func() bool) {
	t.Helper()
	for stop := time.Now().Add(testTimeout); !cond(); time.Sleep(100 * time.Microsecond) {
		if time.Now().After(stop) {
			t.Fatalf("not in time: %s", what)
		}
	}
}

// send makes the scripted peer send segments in one write.
func (d *dut) send(segs ...*wiretest.Segment) {
	d.t.Helper()
	must(d.t, d.peer.Send(segs...))
}

// sendInTwo sends the last segment in two parts, the way to direct placement. The rest may find the connection ended.
func (d *dut) sendInTwo(segs ...*wiretest.Segment) {
	d.t.Helper()
	d.send(segs[:len(segs)-1]...)
	b := d.peer.Encode(segs[len(segs)-1])
	must(d.t, d.peer.Write(b[:100]))
	d.q.soon(d.t, "the header to be read", func() bool {
		r := &d.q.rx
		return d.q.phase != phaseOpen || r.direct || r.re > r.rs || r.def != nil && r.def.Partial()
	})
	d.peer.Write(b[100:])
}

// message is the peer's next right Send.
func (d *dut) message(payload string) *wiretest.Segment {
	d.msn++
	return wiretest.Send(d.msn-1, []byte(payload))
}

// release makes a responder free to send, and takes the read request that then comes.
func (d *dut) release() {
	d.t.Helper()
	d.send(wiretest.Write(0xdead, 0, nil))
	expect(d.t, d.peer, rdmap.OpReadReq)
}

// placed notes octets that the arena must hold in the end.
func (d *dut) placed(off int, b []byte) { copy(d.shadow[off:], b) }

// loose takes whatever is in a range of the arena in the end for right.
func (d *dut) loose(off, n int) { d.slack = append(d.slack, [2]int{off, off + n}) }

// received notes the payload of receive i.
func (d *dut) received(i int, b string) { d.placed(recvOff+i*recvCap*2, []byte(b)) }

// echoOnce sends a message from a to b and back.
func echoOnce(t *testing.T, a, b *end) {
	t.Helper()
	a.id++
	a.fill(a.id, 0, 256)
	b.postRecv(a.id, b.sge(4096, 256))
	a.postRecv(a.id, a.sge(8192, 256))
	a.post(rdma.SendWR{ID: a.id, Op: rdma.OpSend, NumSGE: 1, SGE: [4]rdma.SGE{a.sge(0, 256)}})
	a.want(b, rdma.WCSend, a.id, rdma.StatusSuccess)
	b.want(a, rdma.WCRecv, a.id, rdma.StatusSuccess)
	b.post(rdma.SendWR{ID: a.id, Op: rdma.OpSend, NumSGE: 1, SGE: [4]rdma.SGE{b.sge(4096, 256)}})
	b.want(a, rdma.WCSend, a.id, rdma.StatusSuccess)
	a.want(b, rdma.WCRecv, a.id, rdma.StatusSuccess)
	equal(t, "echo", a.bytes(8192, 256), a.bytes(0, 256))
}

func (d *dut) close() {
	d.quit.Store(true)
	d.wg.Wait()
	d.peer.Close()
	d.l.Close()
	d.q.Close()
	for _, m := range []*mr{d.target, d.quiet, d.far, d.inv, d.rx} {
		m.Close()
	}
	d.by.free()
	must(d.t, d.cq.Close())
	must(d.t, d.dev.Close())
	d.arena.Free()
}
