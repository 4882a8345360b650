package fused

import (
	"bytes"
	"encoding/binary"
	"net"
	"slices"
	"testing"
	"time"
)

// frameOf is a stream frame with data; total is the message's length, 0 for data that continues one.
func frameOf(fl flags, total int, data []byte) []byte {
	var b []byte
	if fl&fFirst != 0 {
		b = binary.LittleEndian.AppendUint32(b, uint32(total))
	}
	return raw(kindStream, fl, 1, append(b, data...)...)
}

// arriving is a session with a stream, and both ends of its connection.
func arriving(t *testing.T, window int) (s *session, st *stream, near, far net.Conn) {
	near, far = net.Pipe()
	s = newSession(near, true, &Config{Window: window, MaxRecvMsgSize: defaultMaxRecv})
	s.use(near)
	st = newStream(s, 1)
	must(t, s.enter(st))
	t.Cleanup(func() {
		s.fail(net.ErrClosed)
		far.Close()
	})
	return s, st, near, far
}

// A message arrives whole however its frames are cut, also when reads time out in the middle of bulk data.
func TestBulkDataArrivesInItsPlace(t *testing.T) {
	s, st, near, far := arriving(t, defaultWindow)
	want := make([]byte, 3*bulkMin+77)
	for i := range want {
		want[i] = byte(i * 7)
	}
	wire := join(frameOf(fData|fFirst, len(want), want[:10]), frameOf(fData, 0, want[10:bulkMin+10]),
		frameOf(fData, 0, want[bulkMin+10:3*bulkMin]), frameOf(fData, 0, want[3*bulkMin:]))
	placed, timeouts := 0, 0
	handle := func(f *frame) error {
		placed += f.placed
		return st.deliver(f)
	}
	more := make(chan struct{})
	go func() {
		for piece := range slices.Chunk(wire, 1000) {
			far.Write(piece)
			<-more // a read that timed out behind it
		}
	}()
	for end := time.Now().Add(testTimeout); st.find() == nil && time.Now().Before(end); {
		near.SetReadDeadline(time.Now().Add(5 * time.Millisecond))
		if err := s.read(handle); err != nil {
			timeouts++
			select {
			case more <- struct{}{}:
			default:
			}
		}
		must(t, s.cause())
	}
	close(more)
	m := st.find()
	if m == nil || !bytes.Equal(*m.buf, want) {
		t.Fatal("the message is not what was sent")
	}
	if placed < bulkMin || timeouts < 2 {
		t.Errorf("%d bytes placed over %d timeouts: the test shows nothing", placed, timeouts)
	}
}

func (st *stream) find() *message {
	st.mu.Lock()
	defer st.mu.Unlock()
	if len(st.queue) == 0 || !st.queue[0].whole() {
		return nil
	}
	return st.queue[0]
}

// Data beyond its message, its window or its stream is a breach also where it would be read into its place.
func TestBulkDataKeepsTheRules(t *testing.T) {
	big := make([]byte, 2*bulkMin)
	for name, c := range map[string]struct {
		window int
		frames []byte
	}{
		"longer than its message": {defaultWindow, join(frameOf(fData|fFirst, bulkMin, big[:10]), frameOf(fData, 0, big))},
		"beyond the window": {minWindow, join(frameOf(fData|fFirst, 1<<20, make([]byte, minWindow-bulkMin)),
			frameOf(fData, 0, big))},
		"of no message": {defaultWindow, frameOf(fData, 0, big)},
	} {
		t.Run(name, func(t *testing.T) {
			s, st, near, far := arriving(t, c.window)
			near.SetReadDeadline(time.Now().Add(10 * time.Second))
			go func() {
				for piece := range slices.Chunk(c.frames, 1000) {
					far.Write(piece)
				}
			}()
			var err error
			for err == nil {
				err = s.read(st.deliver)
			}
			if s.cause() == nil {
				t.Errorf("%v, session ended by %v", err, s.cause())
			}
		})
	}
}

func TestPoolOfLongMessages(t *testing.T) {
	for _, n := range []int{0, 1, 64, poolStep, poolStep + 1, 2 * poolStep, 1 << 20, 1<<20 + 13, defaultMaxRecv,
		defaultMaxRecv + 1, 9 << 20} {
		p := poolFor(n)
		b := p.Get(n)
		if len(*b) != n {
			t.Fatalf("%d bytes for a message of %d", len(*b), n)
		}
		if (p == &longMessages) != (n > poolStep && n <= defaultMaxRecv) {
			t.Errorf("%d bytes come from the wrong pool", n)
		}
		p.Put(b)
	}
	var p messagePool
	p.Put(p.Get(3*poolStep - 5))
	for range 1000 { // sync.Pool forgets now and then, at random under the race detector
		b := p.Get(2*poolStep + 1)
		if cap(*b) != 3*poolStep {
			t.Fatalf("capacity %d", cap(*b))
		}
		(*b)[0] = 1
		p.Put(b)
		if again := p.Get(3 * poolStep); (*again)[0] == 1 {
			return
		}
	}
	t.Error("nothing is used again")
}
