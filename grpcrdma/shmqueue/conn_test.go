package shmqueue

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"testing"
	"time"

	"golang.org/x/net/nettest"

	"github.com/rdmaperf/rdmaperf/grpcrdma/internal/rpctest"
	"github.com/rdmaperf/rdmaperf/internal/leaktest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

func pair(t testing.TB, size int, busy time.Duration) (a, b *Conn) {
	t.Helper()
	a, files, err := Pair("test", size, busy)
	rpctest.Must(t, err)
	if b, err = Open("test", files, busy); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { a.Close(); b.Close() })
	return a, b
}

func TestConnIsANetConn(t *testing.T) {
	for _, busy := range []time.Duration{0, 50 * time.Microsecond} {
		nettest.TestConn(t, func() (net.Conn, net.Conn, func(), error) {
			a, b := pair(t, 4<<10, busy)
			return a, b, func() { a.Close(); b.Close() }, nil
		})
	}
}

// Every byte arrives in order, around the end of the ring, in whatever pieces.
func TestBytesArriveWhole(t *testing.T) {
	a, b := pair(t, 4<<10, 0)
	seed := rand.Uint64()
	rng := rand.New(rand.NewPCG(seed, 1))
	sent := make([]byte, 1<<20)
	for i := range sent {
		sent[i] = byte(rng.Uint32())
	}
	go func() {
		for rest := sent; len(rest) > 0; {
			n := min(len(rest), 1+rng.IntN(9000))
			a.Write(rest[:n])
			rest = rest[n:]
		}
		a.Close() // what was written before is still taken
	}()
	got, err := io.ReadAll(b)
	if err != nil || !bytes.Equal(got, sent) {
		t.Errorf("%d of %d bytes, equal %v, %v (seed %d)", len(got), len(sent), bytes.Equal(got, sent), err, seed)
	}
}

// A peer may write what it likes into the shared memory: that is an error and no more.
func TestCorruptPositionsAreFound(t *testing.T) {
	a, b := pair(t, 4<<10, 0)
	a.out.tail.Store(1 << 40)
	if _, err := b.Read(make([]byte, 10)); !errors.Is(err, ErrCorrupt) {
		t.Errorf("read: %v", err)
	}
	a.in.head.Store(77)
	if _, err := b.Write(make([]byte, 10)); !errors.Is(err, ErrCorrupt) {
		t.Errorf("write: %v", err)
	}
	f, err := os.CreateTemp(t.TempDir(), "")
	rpctest.Must(t, err)
	defer f.Close()
	if _, err := Open("test", []*os.File{f, f, f, f, f}, 0); err == nil {
		t.Error("a file that is no sealed memory was opened")
	}
}
