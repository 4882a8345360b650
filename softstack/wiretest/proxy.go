package wiretest

import (
	"io"
	"net"
	"sync"
	"time"

	"github.com/rdmaperf/rdmaperf/softstack/mpa"
)

// Proxy is between an initiator and a responder, passes every octet on, and checks both directions.
type Proxy struct {
	target  string
	timeout time.Duration
	mulpdu  int
	l       *net.TCPListener
	wg      sync.WaitGroup

	mu     sync.Mutex
	conns  []net.Conn
	closed bool
	faults []string
	fpdus  [2]int
}

// NewProxy forwards connections to target. mulpdu bounds the ULPDUs either side
// may send; 0 does not look. timeout is how long a connection may be silent.
func NewProxy(target string, mulpdu int, timeout time.Duration) (*Proxy, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &Proxy{target: target, timeout: timeout, mulpdu: mulpdu, l: l.(*net.TCPListener)}
	p.wg.Go(p.serve)
	return p, nil
}

// Addr is the "host:port" an initiator connects to.
func (p *Proxy) Addr() string { return p.l.Addr().String() }

// FPDUs counts what initiators and responders sent.
func (p *Proxy) FPDUs() (initiator, responder int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.fpdus[0], p.fpdus[1]
}

// Close ends every connection, joins the goroutines and returns what was found.
func (p *Proxy) Close() []string {
	p.l.Close()
	p.mu.Lock()
	p.closed = true
	for _, c := range p.conns {
		c.Close()
	}
	p.mu.Unlock()
	p.wg.Wait()
	return p.faults
}

func (p *Proxy) serve() {
	for {
		a, err := p.l.AcceptTCP()
		if err != nil {
			return
		}
		b, err := net.DialTimeout("tcp", p.target, p.timeout)
		if err != nil {
			a.Close()
			continue
		}
		p.mu.Lock()
		if p.closed {
			a.Close()
			b.Close()
		}
		p.conns = append(p.conns, a, b)
		p.mu.Unlock()
		s := &session{p: p}
		s.ends[0].Check = Checker{MULPDU: p.mulpdu, ORD: -1}
		s.ends[1].Check = Checker{MULPDU: p.mulpdu, ORD: -1, Passive: true}
		p.wg.Go(func() { s.pump(0, a, b.(*net.TCPConn)) })
		p.wg.Go(func() { s.pump(1, b.(*net.TCPConn), a) })
	}
}

type session struct {
	p    *Proxy
	req  *mpa.Frame
	ends [2]struct { // 0 the initiator, 1 the responder: what it sends
		startup []byte
		done    bool // the startup frame is over
		Reader  Reader
		Check   Checker
	}
}

// pump passes on what one end sends. A FIN is passed on as such; anything else
// that ends the reading resets the other side.
func (s *session) pump(from int, in, out *net.TCPConn) {
	b := make([]byte, 64<<10)
	for {
		in.SetReadDeadline(time.Now().Add(s.p.timeout))
		n, err := in.Read(b)
		if n > 0 {
			s.saw(from, b[:n])
			out.SetWriteDeadline(time.Now().Add(s.p.timeout))
			if _, err := out.Write(b[:n]); err != nil {
				in.Close()
				return
			}
		}
		if err == io.EOF {
			out.CloseWrite()
			return
		}
		if err != nil {
			out.SetLinger(0)
			out.Close()
			return
		}
	}
}

// saw checks octets before they are passed on: the other side cannot have reacted to them yet.
func (s *session) saw(from int, b []byte) {
	s.p.mu.Lock()
	defer s.p.mu.Unlock()
	e := &s.ends[from]
	if !e.done {
		e.startup = append(e.startup, b...)
		b = s.start(from)
	}
	e.Reader.Feed(b)
	for {
		if from == 0 && !s.ends[1].done {
			return // what the streams carry is not settled yet
		}
		f, ok := e.Reader.Next()
		if !ok {
			return
		}
		s.p.fpdus[from]++
		e.Check.Got(f)
		s.ends[1-from].Check.Sent(f.ULPDU)
		for _, fault := range e.Check.Faults() {
			s.p.faults = append(s.p.faults, [2]string{"initiator", "responder"}[from]+": "+fault)
		}
		e.Check.faults = nil
	}
}

func (s *session) start(from int) (rest []byte) {
	e := &s.ends[from]
	if len(e.startup) < mpa.FrameHeaderLen {
		return nil
	}
	_, n, err := mpa.ParseFrameHeader(e.startup)
	if err == nil && len(e.startup) < mpa.FrameHeaderLen+n {
		return nil
	}
	e.done = true
	var f *mpa.Frame
	if err == nil {
		f, err = mpa.ParseFrame(e.startup[:mpa.FrameHeaderLen+n])
	}
	if err != nil {
		s.p.faults = append(s.p.faults, err.Error())
		return nil
	}
	rest = e.startup[mpa.FrameHeaderLen+n:]
	if from == 0 {
		s.req = f
		return rest
	}
	if s.req == nil {
		return rest
	}
	crc := s.req.CRC || f.CRC
	s.ends[0].Reader.CRC, s.ends[1].Reader.CRC = crc, crc
	s.ends[0].Reader.Markers, s.ends[1].Reader.Markers = f.Markers, s.req.Markers
	if f.Enhanced && s.req.Enhanced {
		// RFC 6581 §9.1: each side's ORD is bounded by the other's IRD.
		s.ends[0].Check.ORD = int(min(s.req.Enh.ORD, f.Enh.IRD))
		s.ends[1].Check.ORD = int(min(f.Enh.ORD, s.req.Enh.IRD))
		if f.Enh.PeerToPeer && f.Enh.RTRRead {
			s.ends[0].Check.ORD++ // the RTR does not count
		}
	}
	return rest
}
