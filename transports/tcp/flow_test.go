package tcp

import (
	"bytes"
	"errors"
	"fmt"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdmaperf/rdmaperf/transports"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
	"github.com/rdmaperf/rdmaperf/transports/stream"
)

func connected(t testing.TB, c Config, cfg transports.Config) (near, far *session) {
	t.Helper()
	tr := New(c)
	l := must(tr.Listen(soon(t), "127.0.0.1:0", cfg))(t)
	defer l.Close()
	got := make(chan transports.Session, 1)
	go func() {
		s, _, err := l.Accept(soon(t))
		if err != nil {
			t.Error(err)
		}
		got <- s
	}()
	near = must(tr.Dial(soon(t), l.Addr(), nil, cfg))(t).(*session)
	far = (<-got).(*session)
	t.Cleanup(func() { near.Close(); far.Close() })
	return near, far
}

func TestAReceiverWithoutReceivesStopsTheSender(t *testing.T) {
	near, far := connected(t, Config{SendBuffer: 1, RecvBuffer: 64 << 10},
		transports.Config{Window: 1 << 20, SendDepth: 64, RecvDepth: 64, Events: true})
	for i := range near.Local() {
		near.Local()[i] = byte(i * 7)
	}
	dst := make([]transports.Done, 8)
	posted, done := 0, 0
	op := transports.Op{Kind: transports.KindSend, Local: 4096, Len: 32 << 10}
	for still := 0; still < 1000; still++ {
		if n, err := near.Post([]transports.Op{op}); n == 1 {
			posted++
			still = 0
		} else if !errors.Is(err, rdma.ErrQueueFull) {
			t.Fatal(err)
		}
		for _, s := range []*session{near, far} {
			n := must(s.Poll(dst))(t)
			if n > 0 {
				done, still = done+n, 0
			}
		}
	}
	if posted-done != 64 {
		t.Fatalf("posted %d, done %d: the queue is not full", posted, done)
	}
	if !near.out.onWire() || far.in.phase != wantRecv {
		t.Fatalf("near has bytes for the kernel: %v; far %v", near.out.onWire(), far.in.phase)
	}
	// The sender can sleep until the receiver goes on.
	woke := make(chan error, 1)
	go func() { woke <- near.Wait(soon(t)) }()
	for arrived := 0; len(woke) == 0; arrived++ {
		post(t, far, transports.Op{Kind: transports.KindRecv, Local: 8192, Len: 32 << 10})
		for n := 0; n == 0 && len(woke) == 0; {
			var err error
			if n, err = far.Poll(dst[:1]); err != nil {
				t.Fatal(err)
			}
			if n == 1 && !bytes.Equal(far.Local()[8192:][:32<<10], near.Local()[4096:][:32<<10]) {
				t.Fatalf("message %d differs", arrived)
			}
		}
	}
	if err := <-woke; err != nil {
		t.Fatalf("wait: %v", err)
	}
	if n, err := near.Poll(dst); err != nil {
		t.Fatalf("poll after the socket drained = %d, %v", n, err)
	}
}

// Ops that were not even encoded come out once each when the session ends, however little room the polls offer.
func TestEverythingHeldBackComesOutOnce(t *testing.T) {
	const depth = 64
	near, far := connected(t, Config{SendBuffer: 1, RecvBuffer: 64 << 10},
		transports.Config{Window: 4 << 20, SendDepth: depth})
	ops := make([]transports.Op, depth)
	for i := range ops {
		ops[i] = transports.Op{Kind: transports.KindWrite, Len: 4 << 20, Slot: uint32(i)}
	}
	post(t, near, ops...)
	if near.out.next == near.out.ops.tail {
		t.Fatal("nothing is held back")
	}
	if err := far.Close(); err != nil {
		t.Fatal(err)
	}
	dones, _ := pollAll(t, near)
	if len(dones) != depth {
		t.Fatalf("%d completions of %d ops", len(dones), depth)
	}
	for i, d := range dones {
		if int(d.Slot) != i || d.Status == rdma.StatusSuccess {
			t.Errorf("done %d = %+v", i, d)
		}
	}
}

// A responder that never polls its own completions still answers, and both
// directions full of answers do not lock each other.
func TestReadsBothWaysDoNotLock(t *testing.T) {
	near, far := connected(t, Config{SendBuffer: 1, RecvBuffer: 64 << 10},
		transports.Config{Window: 4 << 20, SendDepth: 32, RecvDepth: 1, ReadDepth: 8})
	ends := []*session{near, far}
	for i, s := range ends {
		for j := range s.Local()[:2<<20] {
			s.Local()[j] = byte(j*3 + i)
		}
		for k := range 16 {
			post(t, s, transports.Op{Kind: transports.KindRead, Local: 2<<20 + uint64(k)*(128<<10),
				Remote: uint64(k) * (128 << 10), Len: 128 << 10, Slot: uint32(k)})
		}
	}
	dst := make([]transports.Done, 4)
	for got, idle := 0, 0; got < 32; idle++ {
		for _, s := range ends {
			n := must(s.Poll(dst))(t)
			if n > 0 {
				idle = 0
			}
			got += n
		}
		if idle > 5_000_000 {
			t.Fatalf("%d of 32 reads done", got)
		}
	}
	for i, s := range ends {
		if !bytes.Equal(s.Local()[2<<20:], ends[1-i].Local()[:2<<20]) {
			t.Errorf("side %d read other bytes", i)
		}
	}
}

func TestAReadHoldsBackTheCompletionsBehindIt(t *testing.T) {
	near, far := connected(t, Config{}, transports.Config{Window: 4096, SendDepth: 8, RecvDepth: 8})
	post(t, near,
		transports.Op{Kind: transports.KindRead, Len: 8, Slot: 1},
		transports.Op{Kind: transports.KindWrite, Len: 8, Slot: 2})
	dst := make([]transports.Done, 8)
	for range 100 {
		if n, err := near.Poll(dst); n != 0 || err != nil {
			t.Fatalf("poll before the answer = %v, %v", dst[:n], err)
		}
	}
	n := 0
	for n < 2 {
		if k, err := far.Poll(dst[4:]); k != 0 || err != nil {
			t.Fatalf("far poll = %d, %v", k, err)
		}
		k := must(near.Poll(dst[n:4]))(t)
		n += k
	}
	if dst[0].Slot != 1 || dst[1].Slot != 2 {
		t.Errorf("dones = %v", dst[:2])
	}
}

func TestAnswersAndOpsTakeTurns(t *testing.T) {
	in := newInbound(make([]byte, 4096), 1, 8, 8)
	out := newOutbound(in.win, 8)
	for i := range 4 {
		out.ops.push().Op = transports.Op{Kind: transports.KindWrite, Len: 8}
		*in.resps.push() = response{len: 8, tag: uint32(i)}
	}
	out.encode(&in)
	var kinds []wireKind
	for b := out.stage[:out.used]; len(b) > 0; b = b[headerLen+8:] {
		kinds = append(kinds, parseHeader(b).kind)
	}
	if got, want := fmt.Sprint(kinds),
		"[write read response write read response write read response write read response]"; got != want {
		t.Errorf("encoded %s, want %s", got, want)
	}
}

func TestAnAnswerLeavesWithThePollThatReadTheRequest(t *testing.T) {
	near, far := connected(t, Config{}, small)
	post(t, near, transports.Op{Kind: transports.KindRead, Len: 8})
	dst := make([]transports.Done, 1)
	for end := time.Now().Add(30 * time.Second); far.out.sent == 0; {
		if _, err := far.Poll(dst); err != nil || time.Now().After(end) {
			t.Fatal("no answer", err)
		}
		if !far.in.resps.empty() {
			t.Fatal("a request was read and not answered")
		}
	}
}

func TestQuietOpsNeedNoPollWhileTheSocketTakesThem(t *testing.T) {
	near, _ := connected(t, Config{}, transports.Config{Window: 4096, SendDepth: 4})
	for range 100 {
		post(t, near, transports.Op{Kind: transports.KindWrite, Len: 8, Flags: transports.Unsignaled})
	}
}

func TestInlineBytesAreTakenWhileTheSocketIsFull(t *testing.T) {
	const size = 512
	near, far := connected(t, Config{SendBuffer: 1, RecvBuffer: 64 << 10},
		transports.Config{Window: 16 << 20, SendDepth: 4096, RecvDepth: 1, MaxInline: size})
	taken := 0
	op := transports.Op{Kind: transports.KindWrite, Len: size, Flags: transports.Inline | transports.Unsignaled}
	for ; taken < 4096; taken++ {
		op.Remote = uint64(taken) * size
		for i := range near.Local()[:size] {
			near.Local()[i] = byte(taken ^ i)
		}
		if n, err := near.Post([]transports.Op{op}); errors.Is(err, rdma.ErrQueueFull) {
			break
		} else if n != 1 || err != nil {
			t.Fatalf("post = %d, %v", n, err)
		}
		clear(near.Local()[:size])
	}
	if taken == 4096 || !near.out.onWire() {
		t.Fatalf("%d ops taken and the socket is not full", taken)
	}
	dst := make([]transports.Done, 1)
	for end := time.Now().Add(30 * time.Second); near.out.onWire() || far.in.midMessage() ||
		far.Local()[taken*size-1] != byte((taken-1)^(size-1)); {
		for _, s := range []*session{near, far} {
			must(s.Poll(dst))(t)
		}
		if time.Now().After(end) {
			t.Fatal("the bytes do not arrive")
		}
	}
	for i, b := range far.Local()[:taken*size] {
		if want := byte(i/size ^ i%size); b != want {
			t.Fatalf("byte %d of op %d = %#x, want %#x", i%size, i/size, b, want)
		}
	}
}

func TestTheNameTellsTheBuffers(t *testing.T) {
	for _, c := range []struct {
		cfg  Config
		want string
	}{
		{Config{}, "tcp"},
		{Config{SendBuffer: 4096}, "tcp(sndbuf=4096)"},
		{Config{SendBuffer: 1, RecvBuffer: 2}, "tcp(sndbuf=1,rcvbuf=2)"},
		{Config{LocalBuffer: 3}, "tcp(local=3)"},
		{Config{RecvBuffer: 2, LocalBuffer: -1}, "tcp(rcvbuf=2,local=0)"},
	} {
		if got := New(c.cfg).Name(); got != c.want {
			t.Errorf("name of %+v = %q, want %q", c.cfg, got, c.want)
		}
	}
}

func TestTheSendBufferIsBoundedOverTheLoopbackDevice(t *testing.T) {
	for _, c := range []struct {
		cfg  Config
		want stream.Buffers
	}{
		{Config{}, stream.Buffers{LocalSend: localBuffer}},
		{Config{LocalBuffer: 3, RecvBuffer: 2}, stream.Buffers{Recv: 2, LocalSend: 3}},
		{Config{LocalBuffer: -1, SendBuffer: 1}, stream.Buffers{Send: 1}},
	} {
		if got := c.cfg.buffers(); got != c.want {
			t.Errorf("buffers of %+v: %+v, want %+v", c.cfg, got, c.want)
		}
	}
}

func TestAClosedTransportDoesNothing(t *testing.T) {
	tr := New(Config{})
	for range 2 {
		if err := tr.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := tr.Dial(soon(t), "127.0.0.1:1", nil, small); !errors.Is(err, rdma.ErrClosed) {
		t.Errorf("dial: %v", err)
	}
	if _, err := tr.Listen(soon(t), "127.0.0.1:0", small); !errors.Is(err, rdma.ErrClosed) {
		t.Errorf("listen: %v", err)
	}
}

func TestATakenAddressIsNamed(t *testing.T) {
	l := listen(t, small)
	if _, err := New(Config{}).Listen(soon(t), l.Addr(), small); !errors.Is(err, rdma.ErrAddrInUse) {
		t.Errorf("second listen: %v, want %v", err, rdma.ErrAddrInUse)
	}
}

func TestFinishedOpsDoNotSlowTheReceiving(t *testing.T) {
	near, far := connected(t, Config{}, transports.Config{Window: 1 << 16, SendDepth: 64, RecvDepth: 4})
	dst, soon := make([]transports.Done, 1), soon(t)
	// Behind a large message few bytes are asked for ahead, so each of these takes calls of its own.
	post(t, far, transports.Op{Kind: transports.KindWrite, Len: largeMsg})
	for near.in.ahead != smallAhead || near.in.phase != wantHeader {
		must(near.Poll(dst))(t)
	}
	for range 32 {
		post(t, near, transports.Op{Kind: transports.KindWrite, Len: 64})
	}
	far.Local()[0] = 0x5a
	for range 2 {
		post(t, far, transports.Op{Kind: transports.KindWrite, Len: largeMsg})
	}
	post(t, far, transports.Op{Kind: transports.KindWrite, Len: 1, Remote: 1 << 15})
	// Under load the kernel may deliver later than in the posting call.
	for all := 2*(headerLen+largeMsg) + headerLen + 1; ; time.Sleep(time.Millisecond) {
		if n := must(unix.IoctlGetInt(near.conn.(interface{ FD() int }).FD(), unix.TIOCINQ))(t); n == all {
			break
		}
		if err := soon.Err(); err != nil {
			t.Fatal(err)
		}
	}
	polls := 0
	for ; near.Local()[1<<15] != 0x5a; polls++ {
		if n, err := near.Poll(dst); n != 1 || err != nil {
			t.Fatalf("poll %d: %d finished ops, %v", polls, n, err)
		}
	}
	if polls > 1 {
		t.Errorf("%d polls for three writes that lay in the socket, want 1", polls)
	}
}

// A sender that sleeps between its turns is woken for the next: nothing but its own socket has to happen.
func TestASleepingSenderTakesItsTurns(t *testing.T) {
	near, far := connected(t, Config{}, transports.Config{Window: 1 << 16, SendDepth: 256, RecvDepth: 4, Events: true})
	ctx := soon(t)
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for dst := make([]transports.Done, 1); ; {
			select {
			case <-stop:
				return
			default:
				far.Poll(dst)
			}
		}
	}()
	defer func() { close(stop); <-stopped }()
	ops := make([]transports.Op, 256)
	for i := range ops {
		ops[i] = transports.Op{Kind: transports.KindWrite, Len: 32 << 10}
	}
	dst := make([]transports.Done, len(ops)) // nothing finished is left to wake it
	for round := range 8 {
		if n, err := near.Post(ops); n != len(ops) || err != nil {
			t.Fatalf("round %d: posted %d, %v", round, n, err)
		}
		if sent := near.out.sent; round == 0 && sent > turnBytes+batchBytes {
			t.Fatalf("one turn sent %d bytes", sent)
		}
		for done := 0; done < len(ops); {
			if err := near.Wait(ctx); err != nil {
				t.Fatalf("round %d: %d of %d done: %v", round, done, len(ops), err)
			}
			n := must(near.Poll(dst))(t)
			done += n
		}
	}
}
