package fused

import (
	"bytes"
	"errors"
	"net"
	"testing"
	"time"
)

// gate is a connection whose writes are seen one by one, and last until they are answered.
type gate struct {
	net.Conn
	written chan []byte
	answer  chan error
}

func (g *gate) Write(b []byte) (int, error) {
	g.written <- append([]byte(nil), b...)
	if err := <-g.answer; err != nil {
		return 0, err
	}
	return len(b), nil
}

func (g *gate) SetWriteDeadline(time.Time) error { return nil }
func (g *gate) Close() error                     { return nil }

func gated(t *testing.T) (*session, *gate) {
	g := &gate{written: make(chan []byte), answer: make(chan error)}
	s := newSession(g, true, &Config{Window: defaultWindow})
	s.use(g)
	t.Cleanup(func() {
		s.fail(net.ErrClosed)
		s.closeWriteQueue()
	})
	return s, g
}

func bytesOf(frames ...string) (b []byte) {
	for _, f := range frames {
		b = append(b, frameOf(fData, 0, []byte(f))...)
	}
	return b
}

func sendText(s *session, text string) error {
	return s.send(kindStream, fData, 1, nil, 0, []byte(text))
}

func sending(s *session, text string) <-chan error {
	sent := make(chan error)
	go func() { sent <- sendText(s, text) }()
	return sent
}

// waits fails t if what done ends does not wait for a write.
func waits[T any](t *testing.T, what string, done <-chan T) {
	t.Helper()
	select {
	case <-done:
		t.Errorf("%s beside a write", what)
	case <-time.After(20 * time.Millisecond):
	}
}

func (g *gate) expect(t *testing.T, want []byte, answer error) {
	t.Helper()
	if got := <-g.written; !bytes.Equal(got, want) {
		t.Errorf("written %q, want %q", got, want)
	}
	g.answer <- answer
}

// What is sent while somebody writes leaves in one write behind it, in order.
func TestFramesLeaveTogether(t *testing.T) {
	s, g := gated(t)
	first := sending(s, "a")
	got := <-g.written
	for _, f := range []string{"b", "c", "d"} {
		must(t, sendText(s, f)) // nobody waits
	}
	g.answer <- nil
	if !bytes.Equal(got, bytesOf("a")) {
		t.Errorf("written %q first", got)
	}
	g.expect(t, bytesOf("b", "c", "d"), nil)
	must(t, <-first)
}

// Frames that somebody gathers leave with a long one, which waits for nobody.
func TestALongFrameTakesWhatIsGathered(t *testing.T) {
	s, g := gated(t)
	s.out.gathering = true
	must(t, sendText(s, "a"))
	must(t, sendText(s, "b"))
	long := bytes.Repeat([]byte("x"), gatherMax+1)
	sent := sending(s, string(long))
	all := bytesOf("a", "b", string(long))
	g.expect(t, all[:len(all)-len(long)], nil)
	g.expect(t, long, nil)
	must(t, <-sent)
	if s.out.gathering {
		t.Error("somebody still has to write")
	}
}

// A full write queue is written although somebody gathers, and who finds it full while somebody writes waits.
func TestAFullWriteQueueIsWritten(t *testing.T) {
	s, g := gated(t)
	s.out.gathering = true
	piece := string(bytes.Repeat([]byte("x"), gatherMax))
	var want []byte
	for len(want) < writeQueueMax {
		want = append(want, bytesOf(piece)...)
		if len(want) < writeQueueMax {
			must(t, sendText(s, piece))
		}
	}
	sent := sending(s, piece)
	got := <-g.written
	if !bytes.Equal(got, want) {
		t.Errorf("%d bytes written, want %d", len(got), len(want))
	}
	for n := 0; n < writeQueueMax; n += headerLen + gatherMax {
		must(t, sendText(s, piece))
	}
	late := sending(s, "late")
	waits(t, "a frame was added to a full write queue", late)
	g.answer <- nil
	g.expect(t, want, nil)
	g.expect(t, bytesOf("late"), nil) // by either of them
	must(t, <-late)
	must(t, <-sent)
}

// A sender does not write for others for ever, and closing joins who goes on.
func TestASenderIsRelieved(t *testing.T) {
	s, g := gated(t)
	sent := sending(s, "a")
	for range writeRounds {
		<-g.written
		must(t, sendText(s, "more"))
		g.answer <- nil
	}
	must(t, <-sent)
	<-g.written
	joined := make(chan struct{})
	s.fail(net.ErrClosed)
	go func() { s.closeWriteQueue(); close(joined) }()
	waits(t, "closed", joined)
	g.answer <- net.ErrClosed
	<-joined
}

// A failed write ends the session, for whom it left frames to, too.
func TestAFailedWriteEndsTheSession(t *testing.T) {
	s, g := gated(t)
	sent := sending(s, "a")
	<-g.written
	must(t, sendText(s, "b"))
	g.answer <- errors.New("no route")
	if err := <-sent; err == nil || err != s.cause() {
		t.Errorf("%v, and the session has %v", err, s.cause())
	}
	for range 2 {
		if err := sendText(s, "c"); !errors.Is(err, s.cause()) {
			t.Errorf("%v behind the end", err)
		}
		s.closeWriteQueue()
	}
}

func TestDrainingWritesEverything(t *testing.T) {
	s, g := gated(t)
	sent, drained := sending(s, "a"), make(chan struct{})
	<-g.written
	must(t, sendText(s, "b"))
	go func() { s.drainWriteQueue(); close(drained) }()
	waits(t, "drained", drained)
	g.answer <- nil
	g.expect(t, bytesOf("b"), nil)
	must(t, <-sent)
	<-drained
	s.out.gathering = true
	must(t, sendText(s, "c"))
	go g.expect(t, bytesOf("c"), nil)
	s.drainWriteQueue()
}
