package fused

import (
	"bytes"
	"context"
	"encoding/binary"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"

	pb "google.golang.org/grpc/interop/grpc_testing"
)

// exchange makes a call with n bytes each way and compares the answer.
func exchange(t *testing.T, r *rpc, n int) {
	t.Helper()
	body := bytes.Repeat([]byte("payload."), n/8)
	out, err := r.Client.UnaryCall(soon(t), &pb.SimpleRequest{ResponseSize: int32(n), Payload: &pb.Payload{Body: body}})
	must(t, err)
	if len(out.Payload.GetBody()) != n {
		t.Fatalf("answer of %d bytes instead of %d", len(out.Payload.GetBody()), n)
	}
}

func (r *rpc) grants() (peers []grant, own int, bytes int) {
	r.ch.mu.Lock()
	defer r.ch.mu.Unlock()
	l := &r.ch.cur.sinks
	l.mu.Lock()
	defer l.mu.Unlock()
	return append(peers, l.peers...), len(l.own), l.bytes
}

func TestLongMessagesTakeSinks(t *testing.T) {
	each(t, arms, func(t *testing.T, a arm) {
		r := newRPC(t, a, Config{}, Config{})
		exchange(t, r, sinkMin/2)
		if peers, own, _ := r.grants(); len(peers)+own > 0 {
			t.Fatalf("%d grants for short messages", len(peers)+own)
		}
		var last uint32
		for i := range 4 {
			exchange(t, r, 1<<20)
			peers, own, bytes := r.grants()
			if a.network == "tcp" {
				if len(peers)+own > 0 {
					t.Fatal("grants on a connection without RDMA")
				}
				continue
			}
			if len(peers) != 1 || own != 1 || bytes < 1<<20 {
				t.Fatalf("call %d: %d grants of the server, %d of the client of %d bytes", i, len(peers), own, bytes)
			}
			if peers[0].key == last {
				t.Fatalf("call %d: the grant was not used", i)
			}
			last = peers[0].key
		}
		// Longer ones take the place of the grants that are too short for them.
		exchange(t, r, 2<<20)
		exchange(t, r, 2<<20)
		if peers, own, bytes := r.grants(); a.network != "tcp" &&
			(len(peers) != 1 || peers[0].n < 2<<20 || own != 1 || bytes < 2<<20) {
			t.Errorf("grants of the server %v, %d of the client of %d bytes", peers, own, bytes)
		}
		exchange(t, r, 64)
	})
}

func TestSinksAreBounded(t *testing.T) {
	for _, c := range []struct{ sinks, grants int }{{-1, 0}, {sinkMin, 0}, {3 << 20, 1}} {
		r := newRPC(t, arms[0], Config{Sinks: c.sinks}, Config{})
		for range 2 {
			exchange(t, r, 2<<20)
		}
		if _, own, bytes := r.grants(); own != c.grants || bytes > max(c.sinks, 0) {
			t.Errorf("sinks of %d: %d grants of %d bytes", c.sinks, own, bytes)
		}
	}
}

// Of messages of which two exceed Config.Sinks, every one lands in the memory of the first.
func TestLongestMessagesShareASink(t *testing.T) {
	at := func(r *rpc) (peer, own grant) {
		peers, _, _ := r.grants()
		l := &r.ch.cur.sinks
		l.mu.Lock()
		defer l.mu.Unlock()
		if len(peers) != 1 || len(l.own) != 1 {
			t.Fatalf("%d grants of the server and %d of the client, want one each", len(peers), len(l.own))
		}
		for _, own = range l.own {
		}
		return peers[0], own
	}
	each(t, arms[:3], func(t *testing.T, a arm) {
		r := newRPC(t, a, Config{Sinks: 3 << 20}, Config{Sinks: 3 << 20})
		exchange(t, r, 2<<20)
		peer, own := at(r)
		for i := range 3 {
			exchange(t, r, 2<<20)
			p, o := at(r)
			if p.addr != peer.addr || o.addr != own.addr {
				t.Errorf("call %d: other memory than the first", i)
			}
			if p.key == peer.key || o.key == own.key {
				t.Errorf("call %d: the grant was not used", i)
			}
			peer, own = p, o
		}
	})
}

func TestFreedBehindTheEndIsNotOffered(t *testing.T) {
	s, begun, gate := slowSinks(t, 1)
	close(gate)
	freed := 0
	put := func() { s.newSinkMessage(defaultSinks, func() { freed++ }).Put(nil) }
	if put(); len(begun) != 1 || freed != 1 {
		t.Fatalf("freed %d times, %d offers, want one of each", freed, len(begun))
	}
	<-begun
	s.drop(1, 0) // or there was no room for another
	s.fail(io.EOF)
	if put(); len(begun) != 0 || freed != 2 {
		t.Errorf("freed %d times, %d offers behind the end", freed, len(begun))
	}
}

// A side grants no memory for messages that its device has rather in the ring.
func TestTheDeviceDecidesFromWhereSinksPay(t *testing.T) {
	r := newRPC(t, arms[0], Config{}, Config{})
	exchange(t, r, 64)
	r.ch.cur.sinks.from = 1 << 20 // the client's callers read it, and there is none
	for _, c := range []struct{ n, grants int }{{512 << 10, 0}, {2 << 20, 1}} {
		exchange(t, r, c.n)
		if _, own, _ := r.grants(); own != c.grants {
			t.Errorf("%d grants behind messages of %d bytes", own, c.n)
		}
	}
}

// A grant that a call did not use up goes back. A message for an ended call is dropped, and its memory with it.
func TestGrantsWithoutACallAreFreed(t *testing.T) {
	over, cancel := context.WithCancel(context.Background())
	cancel()
	for name, use := range map[string]func(s *session, g grant){
		"unused": func(s *session, g grant) {
			if err := s.place(over, g, make([]byte, 1<<20)); err != context.Canceled {
				t.Errorf("%v", err)
			}
		},
		"ended call": func(s *session, g grant) {
			must(t, s.place(context.Background(), g, make([]byte, 1<<20)))
			const only = 1 // the call so far
			key := binary.LittleEndian.AppendUint32(nil, g.key)
			must(t, s.send(kindStream, fData|fFirst|fSink, only, nil, 1<<20, key))
		},
	} {
		r := newRPC(t, arms[0], Config{}, Config{})
		exchange(t, r, 1<<20)
		s := r.ch.cur.session
		g, ok := s.choose(1 << 20)
		if !ok {
			t.Fatalf("%s: no grant", name)
		}
		use(s, g)
		exchange(t, r, 64) // behind it the server has read what was sent before
		for ss := range r.sessions() {
			ss.sinks.mu.Lock()
			if len(ss.sinks.own) != 0 || ss.sinks.bytes != 0 {
				t.Errorf("%s: %d grants of %d bytes are left", name, len(ss.sinks.own), ss.sinks.bytes)
			}
			ss.sinks.mu.Unlock()
		}
	}
}

// slowSinkConn tells of every Grant that begins, and ends none before it is released.
type slowSinkConn struct {
	net.Conn
	begun chan<- bool
	gate  <-chan struct{}
	keys  atomic.Uint32
}

// slowSinks is a session over one; begun has room for n.
func slowSinks(t *testing.T, n int) (s *session, begun chan bool, gate chan struct{}) {
	near, far := net.Pipe()
	t.Cleanup(func() { far.Close() })
	go io.Copy(io.Discard, far)
	cfg, err := Config{}.normal()
	must(t, err)
	begun, gate = make(chan bool, n), make(chan struct{})
	s = newSession(near, true, &cfg)
	s.use(&slowSinkConn{Conn: near, begun: begun, gate: gate})
	return s, begun, gate
}

func (l *slowSinkConn) Grant(int) (uint32, uint64, error) {
	l.begun <- true
	<-l.gate
	return l.keys.Add(1), 0, nil
}
func (l *slowSinkConn) SinkFrom() int                             { return 0 }
func (l *slowSinkConn) Take(uint32) ([]byte, func(), error)       { return nil, nil, errFrame }
func (l *slowSinkConn) Place(uint32, uint64, []byte) (int, error) { return 0, errFrame }

func TestOffersAtOnceAreBounded(t *testing.T) {
	const calls = 3 * maxGrants
	s, begun, gate := slowSinks(t, 2*calls)
	defer s.fail(io.EOF)
	var offers sync.WaitGroup
	for range calls {
		offers.Go(func() { s.offer(sinkMin); begun <- false })
	}
	granting := 0
	for range calls {
		if <-begun {
			granting++
		}
	}
	close(gate)
	offers.Wait()
	if own := len(s.sinks.own); granting != maxGrants || own != maxGrants || s.sinks.bytes != maxGrants*sinkMin {
		t.Errorf("%d grants at once, %d of %d bytes in all, want %d", granting, own, s.sinks.bytes, maxGrants)
	}
}

// badSinks are frames that name grants which are none.
func badSinks() map[string][]byte {
	lands := helloFrame(version, minWindow, maxStreams)
	lands[headerLen+16] = 1
	le := binary.LittleEndian.AppendUint32
	grantOf := func(n uint32) []byte { return raw(kindGrant, 0, 0, le(le(le(le(nil, 7), n), 0), 0)...) }
	landedAt := func(fl flags, payload []byte) []byte { return raw(kindStream, fOpen|fData|fSink|fl, 1, payload...) }
	many := lands
	for range maxGrants + 1 {
		many = append(many, grantOf(sinkMin)...)
	}
	twice := append(bytes.Clone(lands), 0)
	binary.LittleEndian.PutUint32(twice, uint32(len(twice)-headerLen))
	return map[string][]byte{
		"sink that was not granted":     join(lands, landedAt(fFirst, opening(stuck, sinkMin, le(nil, 9)))),
		"sink inside a message":         join(lands, landedAt(0, appendBlock(nil, (&openBlock{method: stuck}).append))),
		"sink with data":                join(lands, landedAt(fFirst, opening(stuck, sinkMin, le(le(nil, 9), 1)))),
		"sink without a key":            join(lands, landedAt(fFirst, opening(stuck, sinkMin, nil))),
		"return of what is not granted": join(lands, raw(kindReturn, 0, 0, 1, 0, 0, 0)),
		"torn return":                   join(lands, raw(kindReturn, 0, 0, 1)),
		"torn grant":                    join(lands, raw(kindGrant, 0, 0, 1, 2, 3)),
		"grant of next to nothing":      join(lands, grantOf(1)),
		"grants without end":            many,
		"grant where nothing lands":     join(goodHello, grantOf(sinkMin)),
		"placing with something":        join(lands, raw(kindPlacing, 0, 0, 1)),
		"hello with more behind it":     twice,
	}
}
