//go:build netstack

package netstack

import (
	"net"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
	"gvisor.dev/gvisor/pkg/buffer"
	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/network/ipv4"
	"gvisor.dev/gvisor/pkg/tcpip/network/ipv6"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
)

const (
	// turnFrames bounds what one look takes, so that a flood does not keep a thread. Arbitrary.
	turnFrames = 64
	// idleRounds is how many rounds bring nothing before a link sleeps until a bell, if no
	// more than busyLooks looks were taken meanwhile: a thread that polls takes thousands,
	// and bells cost its peer a system call each. offerRounds is how many there are before
	// the CPU is offered to threads that poll. Arbitrary.
	idleRounds  = 1 << 13
	busyLooks   = 64
	offerRounds = 16
)

// link is one end of two rings, and netstack's NIC.
type link struct {
	sock *net.UnixConn
	mtu  int

	txMu sync.Mutex
	tx   ring
	imp  impairment
	sent Counts // guarded by txMu

	rxMu    sync.Mutex
	rx      ring
	arr     impairment
	came    Counts // guarded by rxMu
	held    []arrived
	waiting atomic.Int32 // = len(held)

	flow   meter
	copied atomic.Uint64 // octets taken from senders
	up     atomic.Pointer[stack.NetworkDispatcher]
	looks  atomic.Uint32 // by threads that poll
	seen   uint32        // run's
	dozing atomic.Bool
	gone   atomic.Bool // the other process is gone, or broke the rules
	moved  func()      // tells watchers; set before frames flow
	bell   chan struct{}
	quit   chan struct{}
	group  sync.WaitGroup
}

// arrived is a frame that the impairment delays.
type arrived struct {
	at    time.Duration
	frame []byte
}

// born is what times of arrivals count from.
var born = time.Now()

// newLink takes over memory and socket. side is 0 where this process dialed.
func newLink(cfg *Config, sock *net.UnixConn, mem []byte, frames, mtu, side int) *link {
	half := ringSize(frames, mtu)
	l := &link{
		sock: sock, mtu: mtu, imp: newImpairment(cfg, uint64(side)), arr: newImpairment(cfg, uint64(2+side)),
		tx: newRing(mem[side*half:][:half], frames, mtu), rx: newRing(mem[(1-side)*half:][:half], frames, mtu),
		moved: func() {}, bell: make(chan struct{}, 1), quit: make(chan struct{}),
	}
	// A thread may look at a link that is just ending, so the memory goes when nobody can.
	runtime.AddCleanup(l, func(mem []byte) { unix.Munmap(mem) }, mem)
	ledger.enter(l)
	return l
}

// start lets frames flow.
func (l *link) start() {
	l.group.Add(2)
	go l.listen()
	go l.run()
}

// end stops it.
func (l *link) end() {
	close(l.quit)
	l.sock.Close()
	l.group.Wait()
	ledger.leave(l)
}

// listen hears bells, until the other process is gone.
func (l *link) listen() {
	defer l.group.Done()
	var b [64]byte
	for {
		if _, err := l.sock.Read(b[:]); err != nil {
			break
		}
		l.ring()
	}
	l.drive() // what it had put there before
	l.fail()
	l.ring()
}

func (l *link) fail() {
	if !l.gone.Swap(true) {
		l.moved()
	}
}

// ring makes run look.
func (l *link) ring() {
	select {
	case l.bell <- struct{}{}:
	default:
	}
}

// run hands on what comes. While somebody polls the connection it spins, and lets
// netstack's goroutines run between: woken on its own processor they need no other thread
// to be woken for them, which takes 20 us. Else it asks for bells and sleeps.
func (l *link) run() {
	defer l.group.Done()
	for {
		l.spin()
		l.dozing.Store(true)
		// Who looks from here on rings.
		if l.rx.sleep() && !l.holds() && l.looks.Load() == l.seen {
			select {
			case <-l.quit:
				return
			case <-l.bell:
			}
		}
		l.dozing.Store(false)
		select {
		case <-l.quit:
			return
		default:
		}
	}
}

// spin looks until nobody has polled the connection for a while, and nothing came.
func (l *link) spin() {
	for idle, round := 0, 0; idle < idleRounds; idle, round = idle+1, round+1 {
		if l.drive() || l.holds() {
			idle = 0
		}
		runtime.Gosched()
		if round%offerRounds == offerRounds-1 {
			select {
			case <-l.quit:
				return
			default:
			}
			l.letGo()
			yields.Add(1)
			syscall.RawSyscall(unix.SYS_SCHED_YIELD, 0, 0, 0)
			if now := l.looks.Load(); now-l.seen > busyLooks {
				idle = 0
				l.seen = now
			}
		}
	}
	l.seen = l.looks.Load()
}

// letGo sends a frame that the impairment holds back for too long.
func (l *link) letGo() {
	if !l.imp.sends() || !l.txMu.TryLock() {
		return
	}
	defer l.txMu.Unlock()
	if late := l.imp.overdue(); late != nil {
		l.put(late)
		l.wake()
	}
}

// holds tells whether frames wait that will be handed on.
func (l *link) holds() bool { return l.waiting.Load() > 0 && l.IsAttached() && !l.gone.Load() }

// look is what a thread that polls does before it asks netstack.
func (l *link) look() {
	l.looks.Store(l.looks.Load() + 1) // of two at once one may be lost: it only has to move
	if l.dozing.Load() {
		l.ring()
	}
}

// drive hands frames to netstack and tells whether there were any. One thread does at a
// time, and others leave it to that.
func (l *link) drive() bool {
	if !l.rxMu.TryLock() {
		return false
	}
	defer l.rxMu.Unlock()
	up := l.up.Load()
	if up == nil || l.gone.Load() {
		return false
	}
	for n := range turnFrames {
		b, err := l.rx.next()
		if err != nil {
			l.fail()
			return false
		}
		if b == nil {
			l.ripen(*up)
			return n > 0
		}
		l.came.RxFrames++
		l.came.RxOctets += uint64(len(b))
		l.came.RxCopied += uint64(len(b)) // below, by deliver or before
		if l.arr.delays() {
			l.came.Delayed++
			l.held = append(l.held, arrived{l.arr.arrival(time.Since(born)), slices.Clone(b)})
			l.waiting.Store(int32(len(l.held)))
		} else {
			l.deliver(*up, b)
		}
		l.rx.done()
	}
	l.ripen(*up)
	return true
}

// ripen hands on what was delayed long enough. rxMu is held.
func (l *link) ripen(up stack.NetworkDispatcher) {
	if len(l.held) == 0 {
		return
	}
	now, n := time.Since(born), 0
	for ; n < len(l.held) && l.held[n].at <= now; n++ {
		l.deliver(up, l.held[n].frame)
	}
	l.held = slices.Delete(l.held, 0, n)
	l.waiting.Store(int32(len(l.held)))
}

// deliver copies a frame, which the other process could still change.
func (l *link) deliver(up stack.NetworkDispatcher, b []byte) {
	l.flow.in(b)
	p := stack.NewPacketBuffer(stack.PacketBufferOptions{Payload: buffer.MakeWithData(b)})
	version := tcpip.NetworkProtocolNumber(ipv4.ProtocolNumber)
	if header.IPVersion(b) == header.IPv6Version {
		version = ipv6.ProtocolNumber
	}
	up.DeliverNetworkPacket(version, p)
	p.DecRef()
}

// WritePackets puts packets into the ring. A full one drops them, as a NIC does.
func (l *link) WritePackets(pkts stack.PacketBufferList) (int, tcpip.Error) {
	l.txMu.Lock()
	defer l.txMu.Unlock()
	for _, p := range pkts.AsSlice() {
		l.flow.out(p.TransportHeader().Slice(), p.Data().Size())
		if parts := p.AsSlices(); l.imp.sends() {
			l.imp.out(parts, &l.sent, l.put)
		} else {
			l.put(parts)
		}
	}
	l.wake()
	return pkts.Len(), nil
}

// wake rings the peer's bell if it asked for that. txMu is held.
func (l *link) wake() {
	if !l.gone.Load() && l.tx.wanted() {
		l.sent.Bells++
		l.sock.SetWriteDeadline(time.Now().Add(time.Second)) // a full socket has bells enough
		l.sock.Write([]byte{'!'})
	}
}

// put is one frame. txMu is held.
func (l *link) put(parts [][]byte) {
	if l.gone.Load() {
		return
	}
	ok, err := l.tx.put(parts)
	switch {
	case err != nil:
		l.gone.Store(true) // the watchers look anyway: whoever sends is awake
	case !ok:
		l.sent.TxDropped++
	default:
		l.sent.TxFrames++
		for _, p := range parts {
			l.sent.TxOctets += uint64(len(p))
		}
	}
}

func (l *link) counts() (n Counts) {
	l.txMu.Lock()
	n = l.sent
	l.txMu.Unlock()
	l.rxMu.Lock()
	n.add(&l.came)
	l.rxMu.Unlock()
	n.RxMissed, n.TxCopied = l.rx.dropped(), l.copied.Load()
	return n
}

// The rest of stack.LinkEndpoint. Both ends are on one machine, so nobody checks sums.

func (l *link) MTU() uint32                             { return uint32(l.mtu) }
func (l *link) SetMTU(uint32)                           {}
func (l *link) MaxHeaderLength() uint16                 { return 0 }
func (l *link) LinkAddress() tcpip.LinkAddress          { return "" }
func (l *link) SetLinkAddress(tcpip.LinkAddress)        {}
func (l *link) IsAttached() bool                        { return l.up.Load() != nil }
func (l *link) Wait()                                   {}
func (l *link) ARPHardwareType() header.ARPHardwareType { return header.ARPHardwareNone }
func (l *link) AddHeader(*stack.PacketBuffer)           {}
func (l *link) ParseHeader(*stack.PacketBuffer) bool    { return true }
func (l *link) Close()                                  {}
func (l *link) SetOnCloseAction(func())                 {}
func (l *link) Capabilities() stack.LinkEndpointCapabilities {
	return stack.CapabilityTXChecksumOffload | stack.CapabilityRXChecksumOffload
}

// Attach is called with nil when netstack ends.
func (l *link) Attach(up stack.NetworkDispatcher) {
	if up == nil {
		l.up.Store(nil)
		return
	}
	l.up.Store(&up)
}
