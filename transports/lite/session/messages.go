package session

import (
	"encoding/json"
	"fmt"
	"math/bits"
	"sync"

	"github.com/rdmaperf/rdmaperf/transports/lite"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

const (
	Port        = 0    // where a listener takes questions; those of sessions follow
	MaxQuestion = 4096 // bytes of a question or an answer
	maxHello    = 16   // by the contract of package transports
	windowPerm  = lite.PermRead | lite.PermWrite | lite.PermAtomic
)

// question is what a dialler sends, as JSON.
type question struct {
	Hello  []byte
	Name   string // of the dialler's window
	Window uint64 // its size, bytes
}

type answer struct {
	Port   int
	Name   string // of the listener's window
	Window uint64
	Refuse string // why there is no session
}

func encode(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // neither type has anything that JSON lacks
	}
	return b
}

// parseQuestion fails with rdma.ErrProtocol.
func parseQuestion(b []byte) (q question, err error) {
	if json.Unmarshal(b, &q) != nil || len(q.Hello) > maxHello {
		return q, fmt.Errorf("%w: a dialler's set-up", rdma.ErrProtocol)
	}
	return q, nil
}

// parseAnswer fails with rdma.ErrProtocol, or with rdma.ErrUnreachable for a refusal. Ports are 1 to sessions.
func parseAnswer(b []byte, sessions int) (a answer, err error) {
	if json.Unmarshal(b, &a) != nil {
		return a, fmt.Errorf("%w: answer to a session's set-up", rdma.ErrProtocol)
	}
	if a.Refuse != "" {
		return a, fmt.Errorf("the listener refuses: %s: %w", a.Refuse, rdma.ErrUnreachable)
	}
	if a.Port <= Port || a.Port > sessions {
		return a, fmt.Errorf("%w: a session of port %d, want 1 to %d", rdma.ErrProtocol, a.Port, sessions)
	}
	return a, nil
}

// ports are those of a listener's sessions, at most 63. It is safe for concurrent use.
type ports struct {
	most int
	mu   sync.Mutex
	used uint64
}

func newPorts(sessions int) *ports { return &ports{most: sessions, used: 1 << Port} }

// take is a port that no session has; rdma.ErrQueueFull when all are taken.
func (p *ports) take() (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := bits.TrailingZeros64(^p.used)
	if n > p.most {
		return 0, fmt.Errorf("%d sessions: %w", p.most, rdma.ErrQueueFull)
	}
	p.used |= 1 << n
	return n, nil
}

func (p *ports) give(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.used &^= 1 << n
}
