package engine

import (
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/rdmaperf/rdmaperf/reports"
)

// Connections that have not said a plan share few places, of which the longest silent gives way to a newcomer. Accepted
// clients give way, between two points, to one from an address that has fewer. All share one budget of memory and
// threads.

const (
	// IdleGrace is how long an accepted client may be silent between two points before it gives way to any newcomer.
	IdleGrace = time.Minute
	// Costs of what a point makes a server hold, beside windows, bytes rounded up.
	placeCost         = 128
	qpCost            = 64 << 10
	threadCost        = 256 << 10
	DefaultMaxThreads = 1024            // of all clients together
	SilentMargin      = 5 * time.Minute // how long a client may be silent in a point beyond the length of a phase
	nonceLen          = 16
	LongestSay        = 512 // bytes of an error that go to a peer or into the log
)

type guard struct {
	mu       sync.Mutex
	Visitors map[*Visitor]struct{}
	Memory   int64 // held by points
	Threads  int
}

// Visitor is a connection that a server serves.
type Visitor struct {
	conn     net.Conn
	Addr     netip.Addr
	Accepted bool      // it said a plan
	Idle     time.Time // since when it has been waited for, or will be too long in a point; zero: it is being served
	LastSeen time.Time // when it last said something
}

func addrOf(conn net.Conn) netip.Addr {
	if a, ok := conn.RemoteAddr().(*net.TCPAddr); ok {
		return a.AddrPort().Addr().Unmap()
	}
	return netip.Addr{}
}

// allowed reports whether somebody at this address may come. Without a list everybody may.
func (s *Server) allowed(addr netip.Addr) bool {
	for _, p := range s.Allow {
		if p.Contains(addr.Unmap()) {
			return true
		}
	}
	return len(s.Allow) == 0
}

// Enter takes a connection in. For it the longest silent one without a plan, of the address that has most, may have to
// go.
func (s *Server) Enter(conn net.Conn) *Visitor {
	c := &Visitor{conn: conn, Addr: addrOf(conn), Idle: time.Now()}
	s.Guard.mu.Lock()
	defer s.Guard.mu.Unlock()
	if s.Guard.Visitors == nil {
		s.Guard.Visitors = map[*Visitor]struct{}{}
	}
	if oldest, n := s.Guard.longestSilent(false); n >= MaxRefusals {
		oldest.conn.Close() // its goroutine ends with it
		delete(s.Guard.Visitors, oldest)
	}
	s.Guard.Visitors[c] = struct{}{}
	return c
}

func (s *Server) leave(c *Visitor) {
	s.Guard.mu.Lock()
	delete(s.Guard.Visitors, c)
	s.Guard.mu.Unlock()
}

// longestSilent is who has been silent longest of the address with most of them, and how many there are in all.
func (g *guard) longestSilent(accepted bool) (oldest *Visitor, all int) {
	of, now := map[netip.Addr]int{}, time.Now()
	for c := range g.Visitors {
		if c.Accepted == accepted {
			of[source(c.Addr)]++
			all++
		}
	}
	for c := range g.Visitors {
		switch {
		case c.Accepted != accepted || c.Idle.IsZero() || c.Idle.After(now):
		case oldest == nil, of[source(c.Addr)] > of[source(oldest.Addr)],
			of[source(c.Addr)] == of[source(oldest.Addr)] && c.Idle.Before(oldest.Idle):
			oldest = c
		}
	}
	return oldest, all
}

// Admit makes a client of a visitor. Where all places are taken, the longest silent client of the address with most
// gives way to an address with fewer, or after IdleGrace.
func (s *Server) Admit(c *Visitor) error {
	s.Guard.mu.Lock()
	defer s.Guard.mu.Unlock()
	if _, there := s.Guard.Visitors[c]; !there && s.Guard.Visitors != nil {
		return net.ErrClosed
	}
	oldest, n := s.Guard.longestSilent(true)
	if n >= s.maxClients() {
		if oldest == nil {
			oldest = s.Guard.monopolist(source(c.Addr))
		}
		mine, its := 0, 0
		for o := range s.Guard.Visitors {
			if o.Accepted && source(o.Addr) == source(c.Addr) {
				mine++
			}
			if o.Accepted && oldest != nil && source(o.Addr) == source(oldest.Addr) {
				its++
			}
		}
		if oldest == nil || mine+1 >= its && time.Since(oldest.Idle) < IdleGrace {
			return PeerError("accept client", fmt.Errorf("busy: %d clients are being served; try again in %v", n,
				10*time.Second), "again later, or serve --max-clients")
		}
		s.log().Warn("a silent client gives way", "client", oldest.conn.RemoteAddr().String(), "silent",
			time.Since(oldest.LastSeen).Round(time.Second))
		oldest.conn.Close()
		delete(s.Guard.Visitors, oldest)
	}
	c.Accepted, c.Idle, c.LastSeen = true, time.Time{}, time.Now()
	return nil
}

// seen marks that a client said something and may be silent until idle; zero: it is being served.
func (s *Server) seen(c *Visitor, idle time.Time) {
	if c == nil {
		return
	}
	s.Guard.mu.Lock()
	c.LastSeen, c.Idle = time.Now(), idle
	s.Guard.mu.Unlock()
}

// silence is how long a client of this plan may be silent in a point.
func (p *Plan) silence() time.Duration {
	if p.Duration == 0 {
		return idleWait + p.Between
	}
	return max(p.Duration, p.WarmupDuration) + p.Between + SilentMargin
}

// source is who counts as one: an IPv4 address, or the /64 of an IPv6 one, of which a host has all (RFC 4291 §2.5.1).
func source(a netip.Addr) netip.Addr {
	if a = a.Unmap(); !a.Is6() {
		return a
	}
	p, _ := a.WithZone("").Prefix(64) // it has 128 bits
	return p.Addr()
}

// monopolist is, where one other source has all places and more than one, its longest silent client, also within a
// point.
func (g *guard) monopolist(newcomer netip.Addr) (oldest *Visitor) {
	n := 0
	for c := range g.Visitors {
		switch {
		case !c.Accepted:
			continue
		case oldest != nil && source(c.Addr) != source(oldest.Addr):
			return nil
		case oldest == nil || c.LastSeen.Before(oldest.LastSeen):
			oldest = c
		}
		n++
	}
	if n < 2 || source(oldest.Addr) == newcomer {
		return nil
	}
	return oldest
}

// known reports whether a client is trusted: by the token, its network, or as one of this machine.
func (c *ServedClient) known() bool {
	secured := c.Server.TLS != nil && c.Server.TLS.ClientAuth == tls.RequireAndVerifyClientCert
	return secured || len(c.Server.Token) > 0 || len(c.Server.Allow) > 0 ||
		c.who != nil && c.who.Addr.IsLoopback()
}

// hold holds a point against what all clients together may have. release gives it back.
func (s *Server) hold(point string, n Memory) (release func(), err error) {
	windows, queues, threads := n.Windows, n.Queues, n.Threads
	need := windows + queues + int64(threads)*threadCost
	limit, most := cmp.Or(s.MaxMemory, s.maxWindow()), cmp.Or(s.MaxThreads, DefaultMaxThreads)
	if err := checkMemory(point, need); err != nil {
		return nil, err
	}
	refuse := func(what, hint string) error {
		return &reports.ExitError{Code: reports.ExitUsage, Operation: "check " + point, Err: errors.New(what),
			Hint: hint}
	}
	s.Guard.mu.Lock()
	defer s.Guard.mu.Unlock()
	switch {
	case need > limit-s.Guard.Memory:
		return nil, refuse(fmt.Sprintf(
			"it needs %d bytes on the server (windows %d, queues %d, threads %d), of which its --max-memory leaves %d",
			need, windows, queues, int64(threads)*threadCost, max(limit-s.Guard.Memory, 0)),
			"a smaller --size, --tx-depth, --rx-depth or --qp, or serve with a larger --max-memory")
	case threads > most-s.Guard.Threads:
		return nil, refuse(fmt.Sprintf("it needs %d threads on the server, of which its --max-threads leaves %d",
			threads, max(most-s.Guard.Threads, 0)),
			"fewer --threads or --qp, or serve with more --max-threads")
	}
	s.Guard.Memory += need
	s.Guard.Threads += threads
	return func() {
		s.Guard.mu.Lock()
		s.Guard.Memory -= need
		s.Guard.Threads -= threads
		s.Guard.mu.Unlock()
	}, nil
}

// A shared token proves that a client may come: each side sends HMAC-SHA256 (RFC 2104) of the other's nonce under it.

func proof(token, nonce []byte, purpose string) []byte {
	h := hmac.New(sha256.New, token)
	h.Write([]byte(purpose))
	h.Write(nonce)
	return h.Sum(nil)
}

// SessionToken is what a data connection shows: the point's number, or what who knows the shared token makes of it.
func SessionToken(shared, number []byte) []byte {
	if len(shared) == 0 {
		return number
	}
	return proof(shared, number, "rdmaperf data")[:TokenLen]
}

// Ticket is a number that is sent to the client, and the secret of it that connections show; neither without a token.
func (s *Serve) Ticket() (number, secret []byte) {
	token := s.client.Server.Token
	if len(token) == 0 {
		return nil, nil
	}
	number = make([]byte, TokenLen)
	rand.Read(number) // never fails (crypto/rand)
	return number, SessionToken(token, number)
}

// Secret is what connections show to a server that gave this number for them.
func (p *Plan) Secret(number []byte) []byte {
	if len(p.Token) == 0 || len(number) == 0 {
		return nil
	}
	return SessionToken(p.Token, number)
}

// challenge lets a client prove that it knows the token, before anything else of what it said is read.
func (c *ServedClient) challenge(ctx context.Context) error {
	if len(c.Server.Token) == 0 {
		return nil
	}
	nonce := make([]byte, nonceLen)
	rand.Read(nonce) // never fails (crypto/rand)
	if err := c.say(&Message{Type: msgChallenge, Proof: nonce}); err != nil {
		return err
	}
	m, err := c.Ctl.receive(ctx, FirstLineWait)
	if err != nil {
		return PeerError("read proof", err, "")
	}
	if m.Type != msgProof || !hmac.Equal(m.Proof, proof(c.Server.Token, nonce, "rdmaperf control")) {
		return PeerError("accept client", errors.New("the token differs from the server's"), "--token-file of the server")
	}
	return nil
}

func (c *Client) answer(ctx context.Context, m *Message) (*Message, error) {
	if len(c.Plan.Token) == 0 {
		return nil, PeerError("greet "+c.Ctl.peer, errors.New("the server wants a token"),
			"--token-file FILE, or RDMAPERF_TOKEN in the environment")
	}
	if err := c.Ctl.Send(c.Plan.Timeout,
		&Message{Type: msgProof, Proof: proof(c.Plan.Token, m.Proof, "rdmaperf control")}); err != nil {
		return nil, err
	}
	return c.Ctl.receive(ctx, c.Plan.Timeout)
}

func short(s string) string {
	if len(s) > LongestSay {
		return s[:LongestSay] + "…"
	}
	return s
}

// Clients is how many clients are being served.
func (s *Server) Clients() int {
	s.Guard.mu.Lock()
	defer s.Guard.mu.Unlock()
	_, n := s.Guard.longestSilent(true)
	return n
}
