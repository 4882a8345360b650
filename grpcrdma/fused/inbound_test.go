package fused

import (
	"bytes"
	"encoding/binary"
	"net"
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

// A message arrives whole however its frames are cut, also when reads time out in the middle of data that is read into
// its place.
func TestBulkDataArrivesInItsPlace(t *testing.T) {
	near, far := net.Pipe()
	defer far.Close()
	s := newSession(near, true, &Config{Window: defaultWindow, MaxRecvMsgSize: defaultMaxRecv})
	s.use(near)
	defer s.fail(net.ErrClosed)
	st := newStream(s, 1)
	must(t, s.enter(st))
	want := make([]byte, 3*bulkMin+77)
	for i := range want {
		want[i] = byte(i * 7)
	}
	var wire []byte
	wire = append(wire, frameOf(fData|fFirst, len(want), want[:10])...)
	wire = append(wire, frameOf(fData, 0, want[10:bulkMin+10])...)
	wire = append(wire, frameOf(fData, 0, want[bulkMin+10:3*bulkMin])...)
	wire = append(wire, frameOf(fData, 0, want[3*bulkMin:])...)
	placed, timeouts := 0, 0
	handle := func(f *frame) error {
		placed += f.placed
		return st.deliver(f)
	}
	more := make(chan struct{})
	go func() {
		for len(wire) > 0 {
			piece := wire[:min(len(wire), 1000)]
			wire = wire[len(piece):]
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

// find is the whole message, nil before it is.
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
		frames [][]byte
	}{
		"longer than its message": {defaultWindow, [][]byte{frameOf(fData|fFirst, bulkMin, big[:10]),
			frameOf(fData, 0, big)}},
		"beyond the window": {minWindow, [][]byte{frameOf(fData|fFirst, 1<<20, make([]byte, minWindow-bulkMin)),
			frameOf(fData, 0, big)}},
		"of no message": {defaultWindow, [][]byte{frameOf(fData, 0, big)}},
	} {
		t.Run(name, func(t *testing.T) {
			near, far := net.Pipe()
			defer far.Close()
			s := newSession(near, true, &Config{Window: c.window, MaxRecvMsgSize: defaultMaxRecv})
			s.use(near)
			defer s.fail(net.ErrClosed)
			st := newStream(s, 1)
			must(t, s.enter(st))
			near.SetReadDeadline(time.Now().Add(10 * time.Second))
			go func() {
				for _, b := range c.frames {
					far.Write(b)
				}
			}()
			var err error
			for range c.frames {
				if err = s.read(st.deliver); err != nil {
					break
				}
			}
			if err == nil || s.cause() == nil {
				t.Errorf("%v, session ended by %v", err, s.cause())
			}
		})
	}
}

// A message of any length gets memory of that length, and the memory comes back to where it can serve again.
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
