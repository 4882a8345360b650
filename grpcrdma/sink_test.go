package grpcrdma

import (
	"bytes"
	"errors"
	"os"
	"testing"
	"time"

	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// What is placed is there when what was written behind it is, whatever its length,
// and the memory is used again.
func TestSinks(t *testing.T) {
	everywhere(t, func(t *testing.T, p provider, cfg Config) {
		e := newPair(t, p, cfg, cfg)
		near, far := e.conn()
		for i, n := range []int{1, 100, 64 << 10, 1<<20 + 13, 1 << 20, 300 << 10} {
			key, addr, err := far.Grant(n)
			must(t, err)
			if held := e.b.Stats().Sinks; held < n {
				t.Fatalf("%d bytes granted, %d in the statistics", n, held)
			}
			want := pattern(n, byte(i))
			sent := make(chan error, 1)
			go func() {
				k, err := near.Place(key, addr, want)
				if err == nil && k == n {
					_, err = near.Write([]byte("there"))
				}
				sent <- err
			}()
			readFull(t, far, 5)
			must(t, <-sent)
			got, free, err := far.Take(key)
			must(t, err)
			if !bytes.Equal(got[:n], want) {
				t.Fatalf("%d bytes are not what was placed", n)
			}
			free()
		}
		if held := e.b.Stats().Sinks; held != 0 {
			t.Errorf("%d bytes are still granted", held)
		}
		if taken, mapped := far.sinks.store.Sizes(); taken != 0 || mapped < 1<<20 || mapped > 1<<20+4*sinkStep {
			t.Errorf("%d bytes taken, %d mapped for six messages of at most 1 MiB + 13, one after the other", taken,
				mapped)
		}
	})
}

// Memory of a sink is nobody's but its taker's: a peer that writes on is cut off,
// and nothing of it is seen.
func TestASinkIsClosedToThePeer(t *testing.T) {
	onEach(t, func(t *testing.T, p provider) {
		e := newPair(t, p, Config{}, Config{})
		near, far := e.conn()
		key, addr, err := far.Grant(1 << 20)
		must(t, err)
		b, free, err := far.Take(key)
		must(t, err)
		defer free()
		near.Place(key, addr, pattern(1000, 1))
		near.Write([]byte("x"))
		far.SetReadDeadline(time.Now().Add(testTimeout))
		if n, err := far.Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("%d bytes, %v", n, err)
		}
		if len(bytes.Trim(b, "\x00")) > 0 {
			t.Error("the peer wrote into memory that was taken")
		}
	})
}

// A sink is as long as it was granted.
func TestASinkHasAnEnd(t *testing.T) {
	onEach(t, func(t *testing.T, p provider) {
		e := newPair(t, p, Config{}, Config{})
		near, far := e.conn()
		key, addr, err := far.Grant(sinkStep)
		must(t, err)
		near.Place(key, addr+sinkStep-10, pattern(11, 1))
		near.Write([]byte("x"))
		far.SetReadDeadline(time.Now().Add(testTimeout))
		if n, err := far.Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("%d bytes, %v", n, err)
		}
	})
}

// Close frees what was granted; what was taken stays until it is freed.
func TestSinksEndWithTheirConnection(t *testing.T) {
	e := newPair(t, providers[0], Config{}, Config{})
	_, far := e.conn()
	taken, _, err := far.Grant(1 << 20)
	must(t, err)
	left, _, err := far.Grant(1 << 20)
	must(t, err)
	b, free, err := far.Take(taken)
	must(t, err)
	if _, _, err := far.Take(taken); !errors.Is(err, rdma.ErrProtocol) {
		t.Errorf("took twice: %v", err)
	}
	must(t, far.Close())
	b[len(b)-1] = 1 // still there
	free()
	if _, _, err := far.Take(left); !errors.Is(err, rdma.ErrProtocol) {
		t.Errorf("take behind Close: %v", err)
	}
	if _, _, err := far.Grant(1 << 20); err == nil {
		t.Error("grant behind Close")
	}
}

func TestSinksPayLaterOnKernelDevices(t *testing.T) {
	of := func(unaided bool, l rdma.Label) int {
		c := &Conn{net: &Net{caps: rdma.Caps{Unaided: unaided, Label: l}}}
		return c.SinkFrom()
	}
	mem, user, kernel := of(true, rdma.LabelMem), of(false, rdma.LabelSoft), of(true, rdma.LabelSoft)
	if mem != user || kernel <= user || of(true, rdma.LabelDevice) != kernel {
		t.Errorf("from %d bytes in memory, %d in user space, %d in the kernel", mem, user, kernel)
	}
}
