package wiretest

import (
	"errors"
	"fmt"
	"io"
	"net"
	"syscall"
	"time"

	"github.com/rdmaperf/rdmaperf/softstack/mpa"
	"github.com/rdmaperf/rdmaperf/softstack/rdmap"
)

// Peer is one end of a connection that follows a script.
type Peer struct {
	Enc     Encoder
	Check   Checker       // of what the other side sends
	Timeout time.Duration // of every wait

	c *net.TCPConn
	r Reader
}

// Dial connects to a responder under test. timeout bounds this and every later wait.
func Dial(addr string, timeout time.Duration) (*Peer, error) {
	c, err := net.DialTimeout("tcp", addr, timeout)
	if err != nil {
		return nil, err
	}
	return newPeer(c.(*net.TCPConn), timeout, true), nil
}

func newPeer(c *net.TCPConn, timeout time.Duration, otherIsPassive bool) *Peer {
	return &Peer{Timeout: timeout, c: c, Check: Checker{ORD: -1, Passive: otherIsPassive}}
}

// Server waits for initiators under test.
type Server struct {
	l       *net.TCPListener
	timeout time.Duration
}

// Listen opens a port on the loopback interface.
func Listen(timeout time.Duration) (*Server, error) { return ListenAt("127.0.0.1", timeout) }

// ListenAt opens a port at an address of this machine.
func ListenAt(host string, timeout time.Duration) (*Server, error) {
	l, err := net.Listen("tcp", net.JoinHostPort(host, "0"))
	if err != nil {
		return nil, err
	}
	return &Server{l.(*net.TCPListener), timeout}, nil
}

// Addr is the "host:port" to connect to.
func (s *Server) Addr() string { return s.l.Addr().String() }

// Accept takes the next connection.
func (s *Server) Accept() (*Peer, error) {
	s.l.SetDeadline(time.Now().Add(s.timeout))
	c, err := s.l.AcceptTCP()
	if err != nil {
		return nil, err
	}
	return newPeer(c, s.timeout, false), nil
}

// ReadBuffer bounds the receive buffer of the sockets it accepts from now on, and
// with it the window they offer from the start.
func (s *Server) ReadBuffer(n int) error {
	raw, err := s.l.SyscallConn()
	if err != nil {
		return err
	}
	var opt error
	err = raw.Control(func(fd uintptr) {
		opt = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVBUF, n)
	})
	return errors.Join(err, opt)
}

// Close stops listening; accepted connections stay.
func (s *Server) Close() error { return s.l.Close() }

// Initiate exchanges a right Request for the Reply and enters full operation.
func (p *Peer) Initiate(req *mpa.Frame) (*mpa.Frame, error) {
	if err := p.WriteStartup(StartupOf(req)); err != nil {
		return nil, err
	}
	rep, err := p.ReadStartup()
	if err != nil {
		return nil, err
	}
	if !rep.Reply || rep.Reject {
		return rep, fmt.Errorf("answered by reply %t, reject %t", rep.Reply, rep.Reject)
	}
	p.FullOperation(req.CRC || rep.CRC, rep.Markers, req.Markers)
	return rep, nil
}

// Respond reads a Request, sends rep, and enters full operation.
func (p *Peer) Respond(rep *mpa.Frame) (*mpa.Frame, error) {
	req, err := p.ReadStartup()
	if err != nil {
		return nil, err
	}
	if err := p.WriteStartup(StartupOf(rep)); err != nil {
		return nil, err
	}
	p.FullOperation(req.CRC || rep.CRC, req.Markers, rep.Markers)
	return req, nil
}

// FullOperation sets what was negotiated: CRC in both directions, markers in
// what this peer sends and in what it receives.
func (p *Peer) FullOperation(crc, sendMarkers, recvMarkers bool) {
	p.Enc.CRC, p.Enc.Markers = crc, sendMarkers
	p.r.CRC, p.r.Markers = crc, recvMarkers
}

// WriteStartup sends a startup frame in one write.
func (p *Peer) WriteStartup(s Startup) error { return p.Write(s.Bytes()) }

// ReadStartup reads exactly one startup frame.
func (p *Peer) ReadStartup() (*mpa.Frame, error) {
	p.c.SetReadDeadline(time.Now().Add(p.Timeout))
	b := make([]byte, mpa.FrameHeaderLen)
	if _, err := io.ReadFull(p.c, b); err != nil {
		return nil, err
	}
	_, n, err := mpa.ParseFrameHeader(b)
	if err != nil {
		return nil, err
	}
	b = append(b, make([]byte, n)...)
	if _, err := io.ReadFull(p.c, b[mpa.FrameHeaderLen:]); err != nil {
		return nil, err
	}
	return mpa.ParseFrame(b)
}

// Write sends octets as they are.
func (p *Peer) Write(b []byte) error {
	p.c.SetWriteDeadline(time.Now().Add(p.Timeout))
	_, err := p.c.Write(b)
	return err
}

// Encode lays segments into the stream and notes them, for Write or Dribble.
func (p *Peer) Encode(segs ...*Segment) []byte {
	var b []byte
	for _, s := range segs {
		b = p.Enc.Append(b, s)
		p.Check.Sent(s.ulpdu)
	}
	return b
}

// Send sends segments, all in one write.
func (p *Peer) Send(segs ...*Segment) error { return p.Write(p.Encode(segs...)) }

// Dribble sends octets n at a time.
func (p *Peer) Dribble(n int, b []byte) error {
	for len(b) > 0 {
		k := min(n, len(b))
		if err := p.Write(b[:k]); err != nil {
			return err
		}
		b = b[k:]
	}
	return nil
}

// Next reads the next FPDU. io.EOF is the other side's FIN between FPDUs, io.ErrUnexpectedEOF its FIN inside one.
func (p *Peer) Next() (*FPDU, error) {
	deadline := time.Now().Add(p.Timeout)
	var b [16 << 10]byte
	for {
		if f, ok := p.r.Next(); ok {
			p.Check.Got(f)
			return f, nil
		}
		p.c.SetReadDeadline(deadline)
		n, err := p.c.Read(b[:])
		p.r.Feed(b[:n])
		if n > 0 {
			continue
		}
		if err == io.EOF && p.r.Partial() > 0 {
			err = io.ErrUnexpectedEOF
		}
		return nil, err
	}
}

// Quiet reports an error when the other side sends anything, or ends the stream, within d.
func (p *Peer) Quiet(d time.Duration) error {
	if f, ok := p.r.Next(); ok {
		return fmt.Errorf("unexpected %v", f)
	}
	p.c.SetReadDeadline(time.Now().Add(d))
	var b [1]byte
	n, err := p.c.Read(b[:])
	p.r.Feed(b[:n])
	var late net.Error
	if n == 0 && errors.As(err, &late) && late.Timeout() {
		return nil
	}
	return fmt.Errorf("%d octets and %v, want silence", n, err)
}

// EndKind is how the other side ended the stream.
type EndKind uint8

// The ends.
const (
	EndFIN     EndKind = iota + 1 // in order, between FPDUs
	EndCut                        // FIN inside an FPDU
	EndReset                      // RST
	EndTimeout                    // not at all
)

// String names the end.
func (e EndKind) String() string {
	return [...]string{"none", "fin", "fin inside an fpdu", "reset", "timeout"}[e]
}

// End is what the other side sent until its stream ended.
type End struct {
	Kind  EndKind
	FPDUs []*FPDU
}

// Terminates are the reasons it gave.
func (e *End) Terminates() []rdmap.TermCode {
	var codes []rdmap.TermCode
	for _, f := range e.FPDUs {
		if t, ok := f.Terminate(); ok {
			codes = append(codes, t.Code)
		}
	}
	return codes
}

// Finish reads until the stream ends.
func (p *Peer) Finish() End {
	var e End
	for {
		f, err := p.Next()
		switch {
		case err == nil:
			e.FPDUs = append(e.FPDUs, f)
			continue
		case err == io.EOF:
			e.Kind = EndFIN
		case err == io.ErrUnexpectedEOF:
			e.Kind = EndCut
		case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
			e.Kind = EndReset
		default:
			e.Kind = EndTimeout
		}
		return e
	}
}

// CloseWrite sends FIN.
func (p *Peer) CloseWrite() error { return p.c.CloseWrite() }

// Reset ends the connection with RST.
func (p *Peer) Reset() error {
	p.c.SetLinger(0)
	return p.c.Close()
}

// Close ends the connection.
func (p *Peer) Close() error { return p.c.Close() }
