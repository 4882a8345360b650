package enginetest

import (
	"context"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/rdmaperf/rdmaperf/transports"
)

// Tamper is a proxy before a server, as a switch with bad memory: it swaps two 16-bit words of
// one stream, once, so that TCP's checksum stays right (RFC 1071: it does not depend on the
// order of words).
type Tamper struct {
	T       testing.TB
	At      int64 // octet of the stream
	Back    bool  // of what the server sends
	Swapped atomic.Bool
}

// Sessions has a transport's sessions go through the proxy.
func (p *Tamper) Sessions(tr transports.Transport) transports.Transport {
	return tamperedSessions{tr, p}
}

// Calls has a transport's connections of calls go through the proxy.
func (p *Tamper) Calls(tr transports.CallTransport) transports.CallTransport {
	return tamperedCalls{tr, p}
}

type tamperedSessions struct {
	transports.Transport
	p *Tamper
}

func (t tamperedSessions) Dial(ctx context.Context, addr string, hello []byte, cfg transports.Config) (transports.Session, error) {
	near, err := t.p.before(addr)
	if err != nil {
		return nil, err
	}
	return t.Transport.Dial(ctx, near, hello, cfg)
}

type tamperedCalls struct {
	transports.CallTransport
	p *Tamper
}

func (t tamperedCalls) DialCalls(ctx context.Context, addr string, cfg transports.CallConfig) (transports.CallConn, error) {
	near, err := t.p.before(addr)
	if err != nil {
		return nil, err
	}
	return t.CallTransport.DialCalls(ctx, near, cfg)
}

// before returns the address of a proxy before a server, for one connection.
func (p *Tamper) before(addr string) (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		from, err := l.Accept()
		l.Close()
		if err != nil {
			return
		}
		to, err := net.Dial("tcp", addr)
		if err != nil {
			from.Close()
			return
		}
		end := func() { from.Close(); to.Close() }
		wg.Go(func() { defer end(); p.pump(from, to, !p.Back) })
		wg.Go(func() { defer end(); p.pump(to, from, p.Back) })
	})
	p.T.Cleanup(func() { l.Close(); wg.Wait() })
	return l.Addr().String(), nil
}

// pump forwards, and changes what lies at the chosen place.
func (p *Tamper) pump(from io.Reader, to io.Writer, bad bool) {
	buf := make([]byte, 1<<16)
	for seen := int64(0); ; {
		n, err := from.Read(buf)
		if bad && seen+int64(n) > p.At+4 && !p.Swapped.Load() {
			for i := max(p.At-seen, 0); i+4 <= int64(n); i++ {
				if b := buf[i:]; (b[0] != b[2] || b[1] != b[3]) && p.Swapped.CompareAndSwap(false, true) {
					b[0], b[1], b[2], b[3] = b[2], b[3], b[0], b[1]
					break
				}
			}
		}
		seen += int64(n)
		if _, e := to.Write(buf[:n]); e != nil || err != nil {
			return
		}
	}
}
