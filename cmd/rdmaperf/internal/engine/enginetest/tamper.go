package enginetest

import (
	"context"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/rdmaperf/rdmaperf/softstack/iwarp"
	"github.com/rdmaperf/rdmaperf/transports"
	"github.com/rdmaperf/rdmaperf/transports/direct"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
	"github.com/rdmaperf/rdmaperf/transports/tcp"
)

// Tamper is a proxy before a server that swaps two 16-bit words of one stream, once: TCP's checksum stays right (RFC
// 1071).
type Tamper struct {
	T       testing.TB
	At      int64 // octet of the stream
	Back    bool  // of what the server sends
	HTTP2   bool  // only what lies in frames of data: of pings and of some headers nobody is to notice a change
	Swapped atomic.Bool
}

// Unchecked are the stacks that leave what happens on the way to TCP's checksum.
var Unchecked = map[string]func(testing.TB) transports.Transport{
	"tcp":          func(t testing.TB) transports.Transport { return Owned(t, tcp.New(tcp.Config{})) },
	"iwarp(nocrc)": func(t testing.TB) transports.Transport { return Owned(t, direct.New(UncheckedDevice(t))) },
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

func (t tamperedSessions) Dial(ctx context.Context, addr string, hello []byte,
	cfg transports.Config) (transports.Session, error) {
	near, err := t.p.Before(addr)
	if err != nil {
		return nil, err
	}
	return t.Transport.Dial(ctx, near, hello, cfg)
}

type tamperedCalls struct {
	transports.CallTransport
	p *Tamper
}

func (t tamperedCalls) DialCalls(ctx context.Context, addr string, cfg transports.CallConfig) (transports.CallConn,
	error) {
	near, err := t.p.Before(addr)
	if err != nil {
		return nil, err
	}
	return t.CallTransport.DialCalls(ctx, near, cfg)
}

// Before returns the address of a proxy before a server.
func (p *Tamper) Before(addr string) (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	var wg sync.WaitGroup
	var mu sync.Mutex
	var open []net.Conn
	wg.Go(func() {
		for {
			from, err := l.Accept()
			if err != nil {
				return
			}
			to, err := net.Dial("tcp", addr)
			if err != nil {
				from.Close()
				continue
			}
			mu.Lock()
			open = append(open, from, to)
			mu.Unlock()
			end := func() { from.Close(); to.Close() }
			wg.Go(func() { defer end(); p.pump(from, to, !p.Back) })
			wg.Go(func() { defer end(); p.pump(to, from, p.Back) })
		}
	})
	p.T.Cleanup(func() {
		l.Close()
		mu.Lock()
		for _, c := range open {
			c.Close()
		}
		mu.Unlock()
		wg.Wait()
	})
	return l.Addr().String(), nil
}

func (p *Tamper) pump(from io.Reader, to io.Writer, bad bool) {
	buf := make([]byte, 1<<16)
	frames := http2Frames{preface: http2Preface}
	if p.Back {
		frames.preface = 0
	}
	for seen := int64(0); ; {
		n, err := from.Read(buf)
		for i := 0; bad && i < n && !p.Swapped.Load(); i++ {
			fits := frames.left(buf[i]) >= 4 || !p.HTTP2
			if b := buf[i:n]; fits && seen+int64(i) >= p.At && len(b) >= 4 && (b[0] != b[2] || b[1] != b[3]) &&
				p.Swapped.CompareAndSwap(false, true) {
				b[0], b[1], b[2], b[3] = b[2], b[3], b[0], b[1]
			}
		}
		seen += int64(n)
		if _, e := to.Write(buf[:n]); e != nil || err != nil {
			return
		}
	}
}

// http2Preface is the octets before a client's first frame (RFC 9113 §3.4).
const http2Preface = 24

// http2Frames finds frames of data in a stream (RFC 9113 §4.1).
type http2Frames struct {
	preface int
	head    []byte // of the frame, up to nine octets
	rest    int    // of its payload
}

// left takes the next octet: how many of a frame of data are left with it, else 0.
func (f *http2Frames) left(b byte) int {
	switch {
	case f.preface > 0:
		f.preface--
	case len(f.head) < 9:
		if f.head = append(f.head, b); len(f.head) == 9 {
			if f.rest = int(f.head[0])<<16 | int(f.head[1])<<8 | int(f.head[2]); f.rest == 0 {
				f.head = f.head[:0]
			}
		}
	default:
		const data = 0
		left, kind := f.rest, f.head[3]
		if f.rest--; f.rest == 0 {
			f.head = f.head[:0]
		}
		if kind == data {
			return left
		}
	}
	return 0
}

// Device has everybody who connects to a device's listeners go through the proxy.
func (p *Tamper) Device(dev rdma.Device) rdma.Device { return tamperedDevice{dev, p} }

type tamperedDevice struct {
	rdma.Device
	p *Tamper
}

func (d tamperedDevice) Listen(ctx context.Context, addr string, backlog int) (rdma.Listener, error) {
	l, err := d.Device.Listen(ctx, addr, backlog)
	if err != nil {
		return nil, err
	}
	near, err := d.p.Before(l.Addr())
	return tamperedListener{l, near}, err
}

type tamperedListener struct {
	rdma.Listener
	near string
}

func (l tamperedListener) Addr() string { return l.near }

// UncheckedDevice leaves what happens on the way to TCP's checksum. The caller closes it.
func UncheckedDevice(t testing.TB) rdma.Device {
	t.Helper()
	return must(iwarp.Open(iwarp.Config{NoCRC: true}))(t)
}
