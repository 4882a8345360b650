// Package dsm is a distributed shared memory: pages that every node reads and writes as its own, coherent by
// invalidation (the MSI protocol).
//
// A page has a home with its directory entry: who has a copy, or who owns it. A read takes a copy from the home; a
// write takes the page for itself when every copy is gone. Grants carry a number that the home counts up for each page:
// an invalidation that overtakes its grant is known by its higher number, and the grant is for one access only.
//
// Pages that a dead node owned are lost ([ErrLost]); pages whose home died answer with lite.ErrPeerDead.
package dsm

import (
	"embed"
	"errors"
	"fmt"
	"sync"

	"github.com/rdmaperf/rdmaperf/transports/lite"
)

// Source is this package, to count its lines.
//
//go:embed *.go
var Source embed.FS

// ErrLost: the node that owned the page died with it.
var ErrLost = errors.New("page is lost with the node that owned it")

// Config is the same for all nodes.
type Config struct {
	Nodes    []int // that share the memory; page p has its home at Nodes[p mod their number]
	Pages    int
	PageSize int // bytes; 4096
	Port     int // and the one above it; of the nodes
}

// Memory is the shared memory as one node has it, with two of its ports. Its methods are safe for concurrent use.
type Memory struct {
	cfg  Config
	node *lite.Node

	mu    sync.Mutex
	pages map[int]*page
	stats Stats

	askMu sync.Mutex // one access at a time fetches
	ask   *lite.Client

	home *home
	inv  *lite.Port
	wg   sync.WaitGroup
}

// Stats counts what the protocol did at a node.
type Stats struct{ Fetches, Invalidations int64 }

type page struct {
	state state
	seq   uint64 // of the grant, or of the invalidation behind it
	data  []byte
}

// Open joins the memory. Every node of it opens it before the first access.
func Open(n *lite.Node, cfg Config) (m *Memory, err error) {
	if cfg.PageSize == 0 {
		cfg.PageSize = 4096
	}
	if cfg.Pages < 1 || cfg.PageSize < 8 || cfg.PageSize > 1<<20 || len(cfg.Nodes) == 0 {
		return nil, fmt.Errorf("%d pages of %d bytes on %d nodes cannot be shared", cfg.Pages, cfg.PageSize,
			len(cfg.Nodes))
	}
	m = &Memory{cfg: cfg, node: n, pages: map[int]*page{}}
	if m.ask, err = n.Client(lite.ClientConfig{MaxReply: grantLen + cfg.PageSize}); err != nil {
		return nil, err
	}
	if m.inv, err = n.Serve(cfg.Port+1, lite.PortConfig{}); err != nil {
		return nil, errors.Join(err, m.ask.Close())
	}
	if m.home, err = newHome(m); err != nil {
		m.inv.Close()
		return nil, errors.Join(err, m.ask.Close())
	}
	m.wg.Add(2)
	go m.home.serve()
	go m.invalidations()
	return m, nil
}

// Close leaves, with the pages that the node owns. Nobody may ask this node's home for pages any more.
func (m *Memory) Close() error {
	m.inv.Close()
	m.home.port.Close()
	m.wg.Wait()
	return errors.Join(m.ask.Close(), m.home.client.Close())
}

// Stats is a snapshot.
func (m *Memory) Stats() Stats {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.stats
}

// Read copies the bytes of a page from off on into dst.
func (m *Memory) Read(p, off int, dst []byte) error {
	return m.access(p, off, len(dst), readWish, func(data []byte) { copy(dst, data[off:]) })
}

// Update gives f the page to change until it returns, while nobody else has it.
func (m *Memory) Update(p int, f func(data []byte)) error {
	return m.access(p, 0, 0, writeWish, f)
}

func (m *Memory) access(p, off, n int, w wish, f func(data []byte)) error {
	if p < 0 || p >= m.cfg.Pages || off < 0 || n > m.cfg.PageSize-off {
		return fmt.Errorf("%d bytes at %d of page %d: not in a memory of %d pages of %d bytes", n, off, p, m.cfg.Pages,
			m.cfg.PageSize)
	}
	if m.try(p, w, f) {
		return nil
	}
	m.askMu.Lock()
	defer m.askMu.Unlock()
	for !m.try(p, w, f) {
		done, err := m.fetch(p, w, f)
		if done || err != nil {
			return err
		}
	}
	return nil
}

func (m *Memory) try(p int, w wish, f func([]byte)) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	g := m.pages[p]
	if g == nil || !allows[g.state][w] {
		return false
	}
	f(g.data)
	return true
}

// fetch asks the home. A grant that was ended before it was here is good for a read; a write starts anew.
func (m *Memory) fetch(p int, w wish, f func([]byte)) (done bool, err error) {
	var req [requestLen]byte
	putRequest(req[:], p, w, 0)
	answer, err := m.ask.Call(m.homeOf(p), m.cfg.Port, req[:])
	if err != nil {
		return false, err
	}
	seq, code, data, err := grant(answer, m.cfg.PageSize)
	switch {
	case err != nil:
		return false, err
	case code == codeLost:
		return false, ErrLost
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.stats.Fetches++
	g := m.pages[p]
	if g == nil {
		g = &page{}
		m.pages[p] = g
	}
	if seq < g.seq {
		if w == readWish {
			f(data)
		}
		return w == readWish, nil
	}
	g.seq, g.data = seq, append(g.data[:0], data...)
	g.state = move(g.state, granted[w])
	f(g.data)
	return true, nil
}

func (m *Memory) homeOf(p int) int { return m.cfg.Nodes[p%len(m.cfg.Nodes)] }

// invalidations ends copies as homes ask for it, and answers with the bytes of pages that this node owned.
func (m *Memory) invalidations() {
	defer m.wg.Done()
	for {
		r, err := m.inv.Recv(recvWait, lite.WaitAdaptive)
		if err == lite.ErrTimeout {
			continue
		}
		if err != nil {
			return
		}
		p, w, seq, err := getRequest(r.Payload, m.cfg.Pages)
		if err != nil || r.From != m.homeOf(p) {
			r.Release()
			continue
		}
		_ = r.Reply(m.end(p, w, seq)) // a home that left needs no answer
	}
}

func (m *Memory) end(p int, w wish, seq uint64) []byte {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.stats.Invalidations++
	g := m.pages[p]
	if g == nil {
		g = &page{}
		m.pages[p] = g
	}
	var b []byte
	if g.state == owned {
		b = append(b, g.data...)
	}
	if seq > g.seq {
		g.seq = seq
	}
	g.state = move(g.state, asked[w])
	return b
}
