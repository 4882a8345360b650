//go:build lwip && cgo

package lwip

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/rdmaperf/rdmaperf/transports/stream"
)

// byReference opens a stack that sends by reference.
func byReference(t testing.TB, cfg Config) *Stack {
	t.Helper()
	cfg.ByReference = true
	s, err := Open(cfg)
	if errors.Is(err, ErrCopies) {
		t.Skipf("%v", err)
	}
	return must(s, err)(t)
}

// block is memory of its own, which is not there any more once it was ended.
type block struct {
	b   []byte
	end uint64 // octets of the stream up to its last one
}

func newBlock(t testing.TB, fill []byte) block {
	t.Helper()
	b := must(unix.Mmap(-1, 0, len(fill), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANONYMOUS|unix.MAP_PRIVATE))(t)
	copy(b, fill)
	return block{b: b}
}

// forbid has whoever still reads the memory die of it, or send what nobody sent.
func (k block) forbid(t testing.TB, harshly bool) {
	t.Helper()
	if !harshly {
		for i := range k.b {
			k.b[i] = 0xee
		}
		return
	}
	noError(t, unix.Munmap(k.b))
}

func iovec(b []byte) unix.Iovec {
	return unix.Iovec{Base: unsafe.SliceData(b), Len: uint64(len(b))}
}

// Every octet arrives though its memory is gone as soon as Unacked says so, whatever must be sent again.
func TestReferencedMemoryIsReadUntilItIsAcknowledgedAndNoLonger(t *testing.T) {
	for name, c := range map[string]struct {
		Config
		octets int
	}{
		"clean":      {Config{}, 2 << 20},
		"loss":       {Config{Loss: 0.002, Seed: 3}, 2 << 20},
		"more loss":  {Config{Loss: 0.04, Seed: 3}, 300 << 10}, // several of a window, which wait for lwIP's timer
		"all":        {Config{Loss: 0.001, Duplicate: 0.02, Reorder: 0.02, Delay: 50 * time.Microsecond, Seed: 4}, 2 << 20},
		"sequential": {Config{Sequential: true}, 2 << 20},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg := c.Config
			s := byReference(t, cfg)
			a, b := pair(t, s)
			r := rand.New(rand.NewPCG(1, 2))
			msg := random(5, c.octets)
			var own [32]byte
			var v [3]unix.Iovec // what is left to send of the message at hand
			left := 0
			var waiting []block
			var got []byte
			buf := make([]byte, 32<<10)
			at, sent, harsh, before := 0, uint64(0), false, s.Counts()
			var referenced int
			for stop := time.Now().Add(60 * time.Second); len(got) < len(msg); {
				if time.Now().After(stop) {
					t.Fatalf("%d of %d octets sent, %d arrived", sent, len(msg), len(got))
				}
				if left == 0 && at < len(msg) {
					n := min(len(msg)-at, 40+r.IntN(5000))
					k := newBlock(t, msg[at:at+n])
					head, tail := min(n, 1+r.IntN(16)), 0
					if n > head {
						tail = min(n-head, r.IntN(16))
					}
					copy(own[:], k.b[:head])
					copy(own[16:], k.b[n-tail:])
					v = [3]unix.Iovec{iovec(own[:head]), iovec(k.b[head : n-tail]), iovec(own[16 : 16+tail])}
					referenced += n - head - tail
					at, left = at+n, n
					k.end = uint64(at)
					waiting = append(waiting, k)
				}
				if left > 0 {
					first := 0
					for v[first].Len == 0 {
						first++
					}
					n, err := a.(stream.Referrer).SendvRef(v[first:], own[:])
					if err != nil && err != stream.ErrAgain {
						t.Fatal(err)
					}
					sent, left = sent+uint64(n), left-n
					for i := first; n > 0; i++ {
						k := min(uint64(n), v[i].Len)
						v[i].Base = (*byte)(unsafe.Add(unsafe.Pointer(v[i].Base), k))
						v[i].Len -= k
						n -= int(k)
					}
					if left == 0 {
						own = [32]byte{} // it is the sender's again
					}
				}
				unacked := must(a.Unacked())(t)
				for len(waiting) > 0 && waiting[0].end+uint64(unacked) <= sent {
					waiting[0].forbid(t, harsh)
					waiting, harsh = waiting[1:], !harsh
				}
				n, err := b.Recv(buf)
				if err != nil && err != stream.ErrAgain {
					t.Fatal(err)
				}
				got = append(got, buf[:n]...)
				if _, err := a.Recv(buf); err != stream.ErrAgain {
					t.Fatalf("the sender received: %v", err)
				}
			}
			if !bytes.Equal(got, msg) {
				t.Fatal("not what was sent")
			}
			n := s.Counts()
			if cfg.Loss > 0 && n.Lost == 0 || cfg.Reorder > 0 && n.Reordered == 0 {
				t.Errorf("the impairment did nothing: %+v", n)
			}
			if refs := n.TxReferenced - before.TxReferenced; name == "clean" && refs < uint64(referenced) {
				t.Errorf("%d octets counted as referenced, of %d", refs, referenced)
			}
		})
	}
}

// What was referenced is gone unacknowledged, after Detach or Close, and arrives all the same.
func TestWhatIsLetGoIsReadNoMore(t *testing.T) {
	for name, letGo := range map[string]func(a stream.Referrer){
		"detach": func(a stream.Referrer) { a.Detach() },
		"close":  func(a stream.Referrer) { a.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			// What is sent at first is lost, and sent again when the memory is gone.
			s := byReference(t, Config{Loss: 0.2, Seed: 11})
			for range 5 { // the acknowledgement of everything may come just before the end
				if letsGo(t, s, letGo) {
					return
				}
			}
			t.Fatal("everything was acknowledged each time, so that nothing is shown")
		})
	}
}

// letsGo reports whether anything was left to be copied; all that was sent arrives in any case.
func letsGo(t *testing.T, s *Stack, letGo func(a stream.Referrer)) (shown bool) {
	t.Helper()
	a, b := pair(t, s)
	msg := random(6, 48<<10)
	k := newBlock(t, msg)
	before := s.Counts().TxCopied
	sent := 0
	for sent < len(msg) {
		n, err := a.(stream.Referrer).SendvRef([]unix.Iovec{iovec(k.b[sent:min(sent+1400, len(msg))])}, nil)
		if err != nil && err != stream.ErrAgain {
			t.Fatal(err)
		}
		if sent += n; n == 0 {
			break // the window, or the network's
		}
	}
	letGo(a.(stream.Referrer))
	k.forbid(t, true)
	n := s.Counts().TxCopied - before
	if n > uint64(sent) {
		t.Errorf("%d octets copied of %d", n, sent)
	}
	arrives(t, b, msg[:sent])
	return n > 0
}

// TestAnAbortedConnectionReadsNoMemory, however often lwIP's timer ticks.
func TestAnAbortedConnectionReadsNoMemory(t *testing.T) {
	s := byReference(t, Config{})
	a, b := pair(t, s)
	k := newBlock(t, random(7, 8<<10))
	if _, err := a.(stream.Referrer).SendvRef([]unix.Iovec{iovec(k.b)}, nil); err != nil {
		t.Fatal(err)
	}
	a.Abort()
	k.forbid(t, true)
	within(t, 10*time.Second, "the peer sees the end", func() bool {
		_, err := b.Recv(make([]byte, 16<<10))
		return err != nil && err != stream.ErrAgain
	})
	time.Sleep(1200 * time.Millisecond) // two ticks
}

// TestALibraryThatCopiesIsNoneToSendByReference, and the error says how to get another.
func TestALibraryThatCopiesIsNoneToSendByReference(t *testing.T) {
	_, err := Open(Config{ByReference: true})
	if err != nil && (!errors.Is(err, ErrCopies) || !bytes.Contains([]byte(err.Error()), []byte("ci/build-lwip"))) {
		t.Error(err)
	}
	for _, cfg := range []Config{{ByReference: true, Threads: C1}, {ByReference: true, TwoCopies: true}} {
		if _, err := Open(cfg); err == nil || errors.Is(err, ErrCopies) {
			t.Errorf("%+v: %v", cfg, err)
		}
	}
}
