package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"time"
)

// attack is a kind of step that opens connections to one of the servers' ports, says
// something on each, holds them for a while, and goes. It cannot fail: what it costs is
// seen in what the server holds, and in clients that are let alone.
func attack(name string, weight, most int, say func(s *soak, r *rand.Rand) []byte) kind {
	return kind{name, weight, func(s *soak, r *rand.Rand) (string, func(context.Context) error) {
		ports := []string{s.serve.addr, s.guarded.addr, s.secured.addr, s.rping.addr, s.grpc.addr, s.fused}
		to, n, hold := ports[r.IntN(len(ports))], 1+r.IntN(most), time.Duration(r.IntN(1500))*time.Millisecond
		said := make([][]byte, n)
		for i := range said {
			said[i] = say(s, r)
		}
		slow := r.IntN(3) == 0
		reset := r.IntN(2) == 0
		return fmt.Sprintf("%d connections to %s for %v", n, to, hold), func(ctx context.Context) error {
			var all []net.Conn
			defer func() {
				for _, c := range all {
					if t, ok := c.(*net.TCPConn); ok && reset {
						t.SetLinger(0) // it goes with a reset
					}
					c.Close()
				}
			}()
			for i := range n {
				c, err := (&net.Dialer{Timeout: 2 * time.Second}).DialContext(ctx, "tcp", to)
				if err != nil {
					continue // refused: that is the server's right
				}
				all = append(all, c)
				c.SetWriteDeadline(time.Now().Add(2 * time.Second))
				if slow && len(said[i]) > 8 {
					c.Write(said[i][:8])
					continue
				}
				c.Write(said[i])
			}
			return sleep(ctx, hold)
		}
	}}
}

func noise(r *rand.Rand, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}

func attacks() []kind {
	return []kind{
		attack("silent crowds", 4, 120, func(*soak, *rand.Rand) []byte { return nil }),
		attack("crowds of noise", 5, 20, func(_ *soak, r *rand.Rand) []byte { return noise(r, 1+r.IntN(8192)) }),
		attack("genuine plans, then nothing", 5, 20, func(s *soak, _ *rand.Rand) []byte { return s.plan }),
		attack("plans cut or bent", 6, 10, func(s *soak, r *rand.Rand) []byte {
			bent := append([]byte(nil), s.plan[:1+r.IntN(len(s.plan))]...)
			for range r.IntN(4) {
				bent[r.IntN(len(bent))] = byte(r.Uint32())
			}
			return append(bent, '\n')
		}),
		attack("lines of a megabyte", 2, 3, func(_ *soak, r *rand.Rand) []byte {
			b := make([]byte, 900<<10)
			for i := range b {
				b[i] = 'a'
			}
			return append([]byte(`{"magic":"rdmaperf-control","type":"`), b...)
		}),
		attack("TLS that is cut or bent", 4, 20, func(s *soak, r *rand.Rand) []byte {
			bent := append([]byte(nil), s.certs.hello...)
			for range r.IntN(3) {
				bent[r.IntN(len(bent))] = byte(r.Uint32())
			}
			return append(bent[:1+r.IntN(len(bent))], noise(r, r.IntN(100))...)
		}),
		attack("MPA requests, then noise", 5, 20, func(_ *soak, r *rand.Rand) []byte {
			// RFC 5044, section 7.1.1: key, flags, revision, length of private data.
			private := r.IntN(64)
			b := append([]byte("MPA ID Req Frame"), byte(r.Uint32()), byte(r.IntN(3)), 0, byte(private))
			return append(append(b, noise(r, private)...), noise(r, r.IntN(2000))...)
		}),
	}
}

// record passes one genuine client through to a server and gives its first line.
func (s *soak) record(ctx context.Context) ([]byte, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	defer l.Close()
	host, port, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		return nil, err
	}
	ended := make(chan error, 1)
	go func() {
		ended <- client(ctx, disturbance{}, noToken, s.rdmaperf, "run", host, "-p", port, "--no-save", "--quiet",
			"--pin", "none",
			"--transport", "tcp", "--workload", "latency", "--op", "send", "-s", "64", "-n", "10", "--warmup", "none")
	}()
	var line []byte
	err = func() error {
		l.(*net.TCPListener).SetDeadline(time.Now().Add(20 * time.Second))
		from, err := l.Accept()
		if err != nil {
			return err
		}
		defer from.Close()
		to, err := net.Dial("tcp", s.serve.addr)
		if err != nil {
			return err
		}
		defer to.Close()
		r := bufio.NewReader(from)
		if line, err = r.ReadBytes('\n'); err != nil {
			return err
		}
		if _, err := to.Write(line); err != nil {
			return err
		}
		go func() { // ends with the client
			io.Copy(to, r)
			to.Close()
		}()
		if _, err = io.Copy(from, to); errors.Is(err, os.ErrDeadlineExceeded) {
			return err
		}
		return nil
	}()
	return line, errors.Join(err, <-ended)
}
