package fused

import (
	"sync"

	"google.golang.org/grpc/mem"
)

// messagePool keeps the memory of long messages. gRPC's own pool clears what it gives out; a message is filled before
// anybody sees it, and clearing a megabyte takes a tenth of the time that moving it does.
type messagePool struct {
	classes [poolClasses + 1]sync.Pool
}

const (
	poolStep    = 64 << 10
	poolClasses = defaultMaxRecv / poolStep // of one step more each; longer messages are rare
)

var longMessages messagePool

var _ mem.BufferPool = (*messagePool)(nil)

// poolFor is where the memory of a message of n bytes comes from, and goes to.
func poolFor(n int) mem.BufferPool {
	if n <= poolStep || n > poolClasses*poolStep {
		return mem.DefaultBufferPool()
	}
	return &longMessages
}

// Get gives n bytes with anything in them; n is one that poolFor sends here.
func (p *messagePool) Get(n int) *[]byte {
	class := (n + poolStep - 1) / poolStep
	b, ok := p.classes[class].Get().(*[]byte)
	if !ok {
		fresh := make([]byte, class*poolStep)
		b = &fresh
	}
	*b = (*b)[:n]
	return b
}

func (p *messagePool) Put(b *[]byte) { p.classes[cap(*b)/poolStep].Put(b) }
