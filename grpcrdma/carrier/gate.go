package carrier

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"io"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/rdmaperf/rdmaperf/internal/onepeer"
)

const (
	// gateWait is for the secret of a new connection, gateRoom how many may be waited for. The oldest gives way.
	gateWait = 5 * time.Second
	gateRoom = 64
)

// word is what a dialler sends first: the hash of a secret, of one length.
func word(secret []byte) []byte {
	sum := sha256.Sum256(append([]byte("rdmaperf calls "), secret...))
	return sum[:]
}

func show(ctx context.Context, conn net.Conn, secret []byte) (net.Conn, error) {
	if len(secret) == 0 {
		return conn, nil
	}
	ctx, cancel := context.WithTimeout(ctx, gateWait)
	defer cancel()
	until, _ := ctx.Deadline()
	err := conn.SetWriteDeadline(until)
	if err == nil {
		_, err = conn.Write(word(secret))
	}
	if err == nil {
		err = conn.SetWriteDeadline(time.Time{})
	}
	if err != nil {
		conn.Close()
		return nil, err
	}
	return conn, nil
}

type gate struct {
	net.Listener
	word   []byte
	passed chan net.Conn
	ended  chan struct{} // closed behind the last Accept of the listener below
	err    error         // why, valid then
	quit   chan struct{}
	once   sync.Once
	all    sync.WaitGroup

	mu      sync.Mutex
	waiting []net.Conn // oldest first
}

// guard puts a gate before l, which it owns, where there is a secret.
func guard(l net.Listener, secret []byte) net.Listener {
	if len(secret) == 0 {
		return l
	}
	g := &gate{Listener: l, word: word(secret), passed: make(chan net.Conn), ended: make(chan struct{}),
		quit: make(chan struct{})}
	g.all.Go(g.run)
	return g
}

func (g *gate) run() {
	defer close(g.ended)
	for {
		conn, err := g.Listener.Accept()
		// out of descriptors, as grpc.Server takes it
		if t, ok := err.(interface{ Temporary() bool }); ok && t.Temporary() {
			select {
			case <-time.After(50 * time.Millisecond):
				continue
			case <-g.quit:
			}
		}
		if err != nil {
			g.err = err
			return
		}
		g.mu.Lock()
		if g.waiting = append(g.waiting, conn); len(g.waiting) > gateRoom {
			g.waiting[0].Close() // its goroutine ends with it
		}
		g.mu.Unlock()
		g.all.Go(func() { g.ask(conn) })
	}
}

func (g *gate) ask(conn net.Conn) {
	defer onepeer.Recover(func(error) { conn.Close() })
	said := make([]byte, len(g.word))
	err := conn.SetReadDeadline(time.Now().Add(gateWait))
	if err == nil {
		_, err = io.ReadFull(conn, said)
	}
	if err == nil {
		err = conn.SetReadDeadline(time.Time{})
	}
	g.mu.Lock()
	g.waiting = slices.DeleteFunc(g.waiting, func(c net.Conn) bool { return c == conn })
	g.mu.Unlock()
	if err != nil || subtle.ConstantTimeCompare(said, g.word) != 1 {
		conn.Close()
		return
	}
	select {
	case g.passed <- conn:
	case <-g.quit:
		conn.Close()
	}
}

// Accept returns the next connection with the secret.
func (g *gate) Accept() (net.Conn, error) {
	select {
	case conn := <-g.passed:
		return conn, nil
	case <-g.ended:
		return nil, g.err
	}
}

// Close ends the listener and every connection that has not shown the secret.
func (g *gate) Close() error {
	var err error
	g.once.Do(func() {
		close(g.quit)
		err = g.Listener.Close()
		g.mu.Lock()
		for _, c := range g.waiting {
			c.Close()
		}
		g.mu.Unlock()
	})
	g.all.Wait()
	return err
}
