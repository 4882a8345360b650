package stack

import (
	"testing"

	"github.com/rdmaperf/rdmaperf/transports"
)

// pair is a session, both ends.
func pair(t testing.TB) (near, far transports.Session) {
	a, b, addr := onMem(t, Config{})
	cfg := transports.Config{Window: 1 << 16, SendDepth: 64, RecvDepth: 64}
	l, err := b.Listen(soon(t), addr, cfg)
	if err != nil {
		t.Fatal(err)
	}
	accepted := make(chan transports.Session, 1)
	go func() {
		s, _, err := l.Accept(soon(t))
		if err != nil {
			t.Error(err)
		}
		accepted <- s
	}()
	near, err = a.Dial(soon(t), l.Addr(), nil, cfg)
	if err != nil {
		t.Fatal(err)
	}
	far = <-accepted
	t.Cleanup(func() {
		near.Close()
		far.Close()
		l.Close()
		a.Close()
		b.Close()
	})
	return near, far
}

// step posts ops at near and polls until so many completions came at both ends.
func step(t testing.TB, near, far transports.Session, ops, receives []transports.Op, done []transports.Done) {
	if n, err := far.Post(receives); n != len(receives) {
		t.Fatal(err)
	}
	if n, err := near.Post(ops); n != len(ops) {
		t.Fatal(err)
	}
	for _, x := range []struct {
		s    transports.Session
		left int
	}{{near, len(ops)}, {far, len(receives)}} {
		for x.left > 0 {
			k, err := x.s.Poll(done)
			if err != nil {
				t.Fatal(err)
			}
			x.left -= k
		}
	}
}

var loops = map[string]func() (ops, receives []transports.Op){
	"write": func() (ops, receives []transports.Op) {
		return []transports.Op{{Kind: transports.KindWrite, Len: 64}}, nil
	},
	"writes": func() (ops, receives []transports.Op) {
		for range 16 {
			ops = append(ops, transports.Op{Kind: transports.KindWrite, Len: 64})
		}
		return ops, nil
	},
	"send": func() (ops, receives []transports.Op) {
		return []transports.Op{{Kind: transports.KindSend, Len: 64}},
			[]transports.Op{{Kind: transports.KindRecv, Len: 64}}
	},
}

func TestASessionAllocatesNothing(t *testing.T) {
	for name, operations := range loops {
		near, far := pair(t)
		ops, receives := operations()
		done := make([]transports.Done, 16)
		step(t, near, far, ops, receives, done)
		if n := testing.AllocsPerRun(1000, func() { step(t, near, far, ops, receives, done) }); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}
