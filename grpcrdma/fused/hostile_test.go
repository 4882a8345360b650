package fused

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"maps"
	"net"
	"runtime"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	pb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/rdmaperf/rdmaperf/grpcrdma/internal/rpctest"
)

// raw is a frame as it travels.
func raw(k kind, fl flags, id uint32, payload ...byte) []byte {
	b := make([]byte, headerLen)
	putHeader(b, len(payload), k, fl, id)
	return append(b, payload...)
}

func helloFrame(v, window, streams uint32) []byte {
	b := append([]byte(nil), magic[:]...)
	for _, x := range []uint32{v, window, streams, 0, defaultBlocks, 0, 0, 0} {
		b = binary.LittleEndian.AppendUint32(b, x)
	}
	return raw(kindHello, 0, 0, b...)
}

var goodHello = helloFrame(version, minWindow, maxStreams)

// opening is the payload of an open frame for a method, with a message behind it.
func opening(method string, total uint32, data []byte) []byte {
	o := openBlock{method: method}
	b := appendBlock(nil, o.append)
	b = binary.LittleEndian.AppendUint32(b, total)
	return append(b, data...)
}

const stuck = "/grpc.testing.TestService/StreamingInputCall"

// cutsOff fails t if a client that says such things is not cut off, or anybody else is.
func (r *rpc) cutsOff(t *testing.T, say []byte) {
	t.Helper()
	c, err := r.dial(soon(t))
	must(t, err)
	defer c.Close()
	must(t, c.SetDeadline(time.Now().Add(testTimeout)))
	go c.Write(say) // it may be cut off before it has said all
	if _, err := io.Copy(io.Discard, c); isTimeout(err) {
		t.Fatal("the client was not cut off")
	}
	rpctest.Unary(t, r.Target)
}

func isTimeout(err error) bool {
	var t interface{ Timeout() bool }
	return errors.As(err, &t) && t.Timeout()
}

func join(parts ...[]byte) []byte { return bytes.Join(parts, nil) }

func badParts() map[string][]byte {
	part := raw(kindMore, 0, 1, 1, 2, 3)
	return map[string][]byte{
		"parts with nothing behind": join(goodHello, part, goodHello),
		"parts of another stream":   join(goodHello, part, raw(kindMore, 0, 2, 1)),
		"a frame between parts":     join(goodHello, part, raw(kindWindow, 0, 1, 1, 0, 0, 0)),
		"parts with flags":          join(goodHello, raw(kindMore, fEnd, 1, 1, 2, 3)),
		"parts without end": join(goodHello,
			bytes.Repeat(raw(kindMore, 0, 1, make([]byte, maxPayload)...), defaultBlocks/maxPayload+2)),
	}
}

func TestHostileClientsAreCutOff(t *testing.T) {
	open := raw(kindStream, fOpen|fData|fFirst, 1, opening(stuck, 10, make([]byte, 5))...)
	huge := raw(kindStream, 0, 1)
	binary.LittleEndian.PutUint32(huge, maxPayload+1)
	many := goodHello
	for id := range uint32(defaultStreams + 1) {
		many = append(many, raw(kindStream, fOpen|fData|fFirst, id+1, opening(stuck, 10, nil)...)...)
	}
	// The handler reads one message and stays; what comes behind it nobody asks for.
	first, err := proto.Marshal(&pb.SimpleRequest{ResponseSize: rpctest.Block})
	must(t, err)
	flood := join(goodHello, raw(kindStream, fOpen|fData|fFirst, 1,
		opening("/grpc.testing.TestService/UnaryCall", uint32(len(first)), first)...))
	for range defaultWindow/maxData + 2 {
		flood = append(flood, raw(kindStream, fData|fFirst, 1, append(binary.LittleEndian.AppendUint32(nil, maxData-4),
			make([]byte, maxData-4)...)...)...)
	}
	say := badParts()
	maps.Copy(say, badSinks())
	maps.Copy(say, map[string][]byte{
		"not this protocol":            []byte("GET / HTTP/1.1\r\nHost: somewhere\r\n\r\n"),
		"another version":              helloFrame(version+1, minWindow, 1),
		"no window":                    helloFrame(version, 0, 1),
		"no streams":                   helloFrame(version, minWindow, 0),
		"calls before the hello":       open,
		"oversize frame":               join(goodHello, huge),
		"unknown kind":                 join(goodHello, raw(numKinds, 0, 0)),
		"second hello":                 join(goodHello, goodHello),
		"go away from a client":        join(goodHello, raw(kindGoAway, 0, 0)),
		"blocks longer than the frame": join(goodHello, raw(kindStream, fOpen, 1, 255, 0, 0, 0)),
		"open block of garbage":        join(goodHello, raw(kindStream, fOpen, 1, 3, 0, 0, 0, 1, 2, 3)),
		"data without its flag":        join(goodHello, raw(kindStream, fEnd, 1, 1, 2, 3)),
		"shorter than its data": join(goodHello, raw(kindStream, fOpen|fData|fFirst, 1,
			opening(stuck, 1, make([]byte, 5))...)),
		"the same stream again":       join(goodHello, open, open),
		"header from a client":        join(goodHello, open, raw(kindStream, fHeader, 1, 8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)),
		"trailer from a client":       join(goodHello, open, raw(kindStream, fTrailer|fEnd, 1, 0, 0, 0, 0)),
		"message longer than it said": join(goodHello, open, raw(kindStream, fData, 1, make([]byte, 6)...)),
		"message inside another":      join(goodHello, open, raw(kindStream, fData|fFirst, 1, 0, 0, 0, 0)),
		"end inside a message":        join(goodHello, open, raw(kindStream, fEnd, 1)),
		"window of nothing":           join(goodHello, open, raw(kindWindow, 0, 1, 0, 0, 0, 0)),
		"window without end":          join(goodHello, open, raw(kindWindow, 0, 1, 255, 255, 255, 255)),
		"torn window":                 join(goodHello, open, raw(kindWindow, 0, 1, 1)),
		"data for no stream":          join(goodHello, open, raw(kindStream, fData|fFirst, 2, 1, 0, 0, 0, 9)),
		"window for no stream":        join(goodHello, raw(kindWindow, 0, 1, 1, 0, 0, 0)),
		"reset of no stream":          join(goodHello, raw(kindReset, 0, 1, 0, 0, 0, 0)),
		"more streams than agreed":    many,
		"more than the window":        flood,
	})
	for name, bytes := range say {
		t.Run(name, func(t *testing.T) {
			newRPC(t, arms[0], Config{}, Config{}).cutsOff(t, bytes)
		})
	}
}

// A peer that announces large messages on all its streams, and sends next to nothing of them, gets next to no memory.
func TestPromisesTakeNoMemory(t *testing.T) {
	r := newRPC(t, arms[0], Config{}, Config{})
	out := goodHello
	for id := range uint32(defaultStreams) {
		out = append(out, raw(kindStream, fOpen|fData|fFirst, id+1, opening(stuck, defaultMaxRecv, make([]byte, 5))...)...)
	}
	out = append(out, raw(numKinds, 0, 0)...) // who is cut off by this has been read up to it
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	r.cutsOff(t, out)
	runtime.ReadMemStats(&after)
	if got, promised := after.TotalAlloc-before.TotalAlloc, uint64(defaultStreams*defaultMaxRecv); got > promised/40 {
		t.Errorf("%d MiB were taken for promises of %d MiB", got>>20, promised>>20)
	}
}

// scripted is a server that says what the test wants, once a call has begun.
func scripted(t *testing.T, say []byte) *Channel {
	t.Helper()
	ch, err := NewChannel(against(t, func(far net.Conn) {
		far.Write(say)
		io.Copy(io.Discard, far)
	}), Config{})
	must(t, err)
	t.Cleanup(func() { ch.Close() })
	return ch
}

// against dials a server that takes the hello and then does what the test wants.
func against(t *testing.T, do func(far net.Conn)) dialer {
	near, far := net.Pipe()
	t.Cleanup(func() { far.Close() })
	go func() {
		far.Read(make([]byte, 64<<10)) // hello
		do(far)
	}()
	return func(context.Context) (net.Conn, error) { return near, nil }
}

// greeting is against a server that greets first.
func greeting(t *testing.T, then func(far net.Conn)) dialer {
	return against(t, func(far net.Conn) {
		far.Write(goodHello)
		then(far)
	})
}

func TestHostileServersAreCutOff(t *testing.T) {
	const noMessage = "an answer without a message" // its stream may not be open yet
	okTrailer := appendBlock(nil, func(b []byte) []byte { return appendTrailer(b, status.New(codes.OK, ""), nil) })
	say := badParts()
	maps.Copy(say, map[string][]byte{
		"not this protocol":         []byte("HTTP/1.1 400 Bad Request\r\n\r\n"),
		"another version":           helloFrame(9, minWindow, 1),
		"an unknown stream":         join(goodHello, raw(kindStream, fTrailer|fEnd, 77, okTrailer...)),
		"end without a status":      join(goodHello, raw(kindStream, fEnd, 1)),
		"open from a server":        join(goodHello, raw(kindStream, fOpen, 1, opening("/a/b", 0, nil)[:4]...)),
		"reset from a server":       join(goodHello, raw(kindReset, 0, 1, 0, 0, 0, 0)),
		"torn trailer":              join(goodHello, raw(kindStream, fTrailer|fEnd, 1, 1, 0, 0, 0, 0)),
		"message that has no begin": join(goodHello, raw(kindStream, fData, 1, 1, 2, 3)),
		"torn window":               join(goodHello, raw(kindWindow, 0, 1, 1, 2)),
		noMessage:                   join(goodHello, raw(kindStream, fTrailer|fEnd, 1, okTrailer...)),
	})
	for name, bytes := range say {
		t.Run(name, func(t *testing.T) {
			ch := scripted(t, bytes)
			_, err := pb.NewTestServiceClient(ch).EmptyCall(soon(t), &pb.Empty{})
			if c := status.Code(err); c != codes.Unavailable && (name != noMessage || c != codes.Internal) {
				t.Errorf("%v", err)
			}
		})
	}
}

func TestBlocksRoundTrip(t *testing.T) {
	md := metadata.MD{"a": {"1", "2"}, "b-bin": {string([]byte{0, 255})}, "": {""}}
	o := openBlock{method: "/s/m", codec: "proto", compressor: "gzip", timeout: time.Second, md: md}
	got, err := parseOpen(o.append(nil))
	must(t, err)
	if got.method != o.method || got.codec != o.codec || got.compressor != o.compressor || got.timeout != o.timeout ||
		len(got.md) != len(md) || got.md["a"][1] != "2" {
		t.Errorf("%+v", got)
	}
	packer, h, err := parseHeader(appendHeader(nil, "gzip", md))
	must(t, err)
	if packer != "gzip" || h["b-bin"][0] != md["b-bin"][0] {
		t.Errorf("%s %v", packer, h)
	}
	st, err := status.New(codes.Aborted, "text ☺").WithDetails(&pb.Payload{Body: []byte("detail")})
	must(t, err)
	back, tr, err := parseTrailer(appendTrailer(nil, st, md))
	must(t, err)
	if back.Code() != codes.Aborted || back.Message() != "text ☺" || len(back.Details()) != 1 || len(tr) != len(md) {
		t.Errorf("%v %v", back, tr)
	}
}

func FuzzFrames(f *testing.F) {
	f.Add(goodHello)
	f.Add(raw(kindStream, fOpen|fData|fFirst|fEnd, 1, opening(stuck, 5, []byte("hello"))...))
	f.Add(join(raw(kindStream, fData|fFirst, 7, 10, 0, 0, 0, 1, 2, 3), raw(kindStream, fData, 7, 4, 5, 6),
		raw(kindWindow, 0, 7, 1, 0, 0, 0)))
	f.Add(raw(kindStream, fData|fFirst|fSink, 7, 0, 0, 2, 0, 1, 0, 0, 0))
	f.Add(raw(kindStream, fHeader|fTrailer|fEnd, 7, 8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 16, 0, 0, 0, 0, 0, 0, 0, 0, 0,
		0, 0, 0, 0, 0, 0, 0, 0, 0, 0))
	f.Fuzz(func(t *testing.T, in []byte) {
		a, b := net.Pipe()
		defer a.Close()
		go func() { b.Write(in); b.Close() }()
		s := newSession(a, true, &Config{Window: minWindow, MaxRecvMsgSize: 1 << 20})
		s.use(a)
		s.await = func(context.Context, *stream, event) error { return io.ErrUnexpectedEOF }
		s.peerWindow = minWindow
		st := newStream(s, 7)
		s.streams[7] = st
		for s.cause() == nil {
			s.read(func(f *frame) error {
				parseHello(f)
				parseOpen(f.open)
				switch f.kind {
				case kindStream:
					if err := st.deliver(f); err != nil {
						return err
					}
				case kindWindow:
					return st.widen(f)
				}
				held := 0
				for _, m := range st.queue {
					held += m.got
				}
				if held > minWindow || st.inLeft < 0 {
					t.Fatalf("%d bytes held, %d of the window left", held, st.inLeft)
				}
				return nil
			})
		}
	})
}

func TestAPanicEndsOneConnectionAlone(t *testing.T) {
	r := newRPC(t, arms[0], Config{}, Config{})
	empty(t, r.Client)
	bad, err := NewChannel(r.dial, Config{})
	must(t, err)
	defer bad.Close()
	good := r.sessions()
	client := pb.NewTestServiceClient(bad)
	empty(t, client)
	for ss := range r.sessions() {
		if _, is := good[ss]; !is {
			ss.callsMu.Lock()
			ss.calls = nil
			ss.callsMu.Unlock()
		}
	}
	if _, err := client.EmptyCall(soon(t), &pb.Empty{}); status.Code(err) != codes.Unavailable {
		t.Errorf("%v, want the end of the connection", err)
	}
	empty(t, r.Client)
}
