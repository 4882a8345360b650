package setup

import (
	"encoding/json"
	"fmt"
	"math/bits"
	"sync"

	"github.com/rdmaperf/rdmaperf/transports/lite"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

const (
	// Port is where a listener takes sessions; theirs follow.
	Port = 0
	// MaxHello is the contract's of package transports, and MaxLine the longest message of a
	// set-up, bytes.
	MaxHello, MaxLine = 16, 4096
	// Open is what a window allows to everybody of the cluster.
	Open = lite.PermRead | lite.PermWrite | lite.PermAtomic
)

// Ask is what a dialler says.
type Ask struct {
	Hello  []byte
	Name   string // of the dialler's window
	Window uint64 // its size, bytes
}

// Answer is what it hears.
type Answer struct {
	Port   int
	Name   string // of the listener's window
	Window uint64
	Refuse string // why there is no session
}

// Encode is the message. Neither kind has anything that JSON cannot say.
func (q Ask) Encode() []byte { return encode(q) }

// Encode is the message.
func (a Answer) Encode() []byte { return encode(a) }

func encode(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return b
}

// ParseAsk reads what a dialler says; rdma.ErrProtocol when it is nothing that one says.
func ParseAsk(b []byte) (q Ask, err error) {
	if json.Unmarshal(b, &q) != nil || len(q.Hello) > MaxHello {
		return q, fmt.Errorf("%w: a dialler's set-up", rdma.ErrProtocol)
	}
	return q, nil
}

// ParseAnswer reads what a listener of at most so many sessions answers: rdma.ErrProtocol when it is
// nothing that one answers, rdma.ErrUnreachable when it refuses.
func ParseAnswer(b []byte, sessions int) (a Answer, err error) {
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

// Ports are those of a listener's sessions, of which at most 63 exist. Make one with NewPorts.
type Ports struct {
	most int
	mu   sync.Mutex
	used uint64
}

// NewPorts are ports for so many sessions.
func NewPorts(sessions int) *Ports { return &Ports{most: sessions, used: 1 << Port} }

// Take is a port that no session has; rdma.ErrQueueFull when all are taken.
func (p *Ports) Take() (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := bits.TrailingZeros64(^p.used)
	if n > p.most {
		return 0, fmt.Errorf("%d sessions: %w", p.most, rdma.ErrQueueFull)
	}
	p.used |= 1 << n
	return n, nil
}

// Give takes a port back.
func (p *Ports) Give(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.used &^= 1 << n
}
