package fused

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"

	"google.golang.org/grpc/mem"

	"github.com/rdmaperf/rdmaperf/internal/onepeer"
)

// bulkMin is the shortest data to read straight into its message. Arbitrary: less is often in the buffer.
const bulkMin = 8 << 10

// inbound reads only a header behind bulk data, so that the next data is still in the connection.
type inbound struct {
	conn   net.Conn
	behind bool
}

func (i *inbound) Read(p []byte) (int, error) {
	if i.behind && len(p) > headerLen {
		p = p[:headerLen]
	}
	return i.conn.Read(p)
}

// bulk is the data of a frame that is being read into its message, also across timeouts.
type bulk struct {
	frame frame
	to    *message
	left  int
}

// read passes the next frame to handle. Every error but a timeout ended the session.
func (s *session) read(handle func(*frame) error) (fails error) {
	defer onepeer.Recover(func(fault error) { s.fail(fault); fails = fault })
	if s.bulk.to != nil {
		return s.readBulk(handle)
	}
	h, err := s.r.Peek(headerLen)
	if err != nil {
		return s.readFailed(err)
	}
	n, err := payloadLen(h)
	if err != nil {
		s.fail(err)
		return err
	}
	if n >= bulkMin && s.r.Buffered() < headerLen+n && s.beginBulk(h, n) {
		return s.readBulk(handle)
	}
	s.in.behind = false
	b, err := s.r.Peek(headerLen + n)
	if err != nil {
		return s.readFailed(err)
	}
	var f frame
	whole := true
	if kind(b[4]) == kindMore || s.more != nil {
		b, whole, err = s.collect(b)
	}
	if whole && err == nil {
		f, err = parseFrame(b)
	}
	if whole && err == nil {
		err = handle(&f)
	}
	if err != nil {
		s.fail(err)
		return err
	}
	s.r.Discard(headerLen + n)
	if s.pingTime > 0 {
		s.received.Add(1)
	}
	return nil
}

// collect joins the payloads of kindMore frames and of the stream frame after them.
func (s *session) collect(b []byte) (whole []byte, done bool, err error) {
	id := binary.LittleEndian.Uint32(b[8:])
	switch k := kind(b[4]); {
	case s.more != nil && id != binary.LittleEndian.Uint32(s.more[8:]), k != kindMore && k != kindStream,
		k == kindMore && b[5] != 0:
		return nil, false, fmt.Errorf("%w: kind %d between the parts of a frame", errFrame, k)
	case len(s.more)+len(b) > s.maxBlocks+maxPayload:
		return nil, false, fmt.Errorf("%w: blocks of more than %d bytes", errFrame, s.maxBlocks)
	case s.more == nil:
		s.more = append(make([]byte, 0, 2*len(b)), b...)
		return nil, false, nil
	case k == kindMore:
		s.more = append(s.more, b[headerLen:]...)
		return nil, false, nil
	}
	whole = append(s.more, b[headerLen:]...)
	copy(whole, b[:headerLen]) // the flags are those of the last frame
	s.more = nil
	return whole, true, nil
}

// beginBulk lets the payload of n bytes after header h go straight into its message, when it may. Faulty frames are
// collected whole, and the same checks name the fault.
func (s *session) beginBulk(h []byte, n int) bool {
	f, err := parseFrame(h[:headerLen])
	if err != nil || s.more != nil || f.kind != kindStream || f.flags&^fPacked != fData {
		return false
	}
	st := s.find(f.stream)
	if st == nil {
		return false
	}
	m := st.place(n)
	if m == nil {
		return false
	}
	f.placed = n
	s.bulk = bulk{f, m, n}
	s.r.Discard(headerLen)
	s.in.behind = true
	return true
}

func (s *session) readBulk(handle func(*frame) error) error {
	b := &s.bulk
	m := b.to
	for b.left > 0 {
		at := m.got + b.frame.placed - b.left
		p := (*m.buf)[at : at+b.left]
		var n int
		var err error
		if k := s.r.Buffered(); k > 0 {
			n, err = s.r.Read(p[:min(k, len(p))])
		} else {
			n, err = s.conn.Read(p)
		}
		b.left -= n
		if s.pingTime > 0 && n > 0 {
			s.received.Add(1)
		}
		if err != nil && b.left > 0 {
			if err == io.EOF {
				err = io.ErrUnexpectedEOF
			}
			return s.readFailed(err)
		}
	}
	f := b.frame
	s.bulk = bulk{}
	if err := handle(&f); err != nil {
		s.fail(err)
		return err
	}
	return nil
}

// readFailed ignores a timeout: what was read so far stays in its place.
func (s *session) readFailed(err error) error {
	var ne net.Error
	if !errors.As(err, &ne) || !ne.Timeout() {
		s.fail(err)
	}
	return err
}

// messagePool keeps the memory of long messages. gRPC's own pool clears what it returns: a tenth of the time of a copy.
type messagePool struct {
	classes [poolClasses + 1]sync.Pool
}

const (
	poolStep    = 64 << 10
	poolClasses = defaultMaxRecv / poolStep // of one step more each; longer messages are rare
)

var longMessages messagePool

var _ mem.BufferPool = (*messagePool)(nil)

func poolFor(n int) mem.BufferPool {
	if n <= poolStep || n > poolClasses*poolStep {
		return mem.DefaultBufferPool()
	}
	return &longMessages
}

// Get returns n bytes with any content; n is one for which poolFor returns this pool.
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
