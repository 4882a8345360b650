package fused

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	spb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

// A frame is a header and its payload, little-endian:
//
//	payload length 4 | kind 1 | flags 1 | zero 2 | stream 4
//
// The payload of a stream frame is what its flags name, in this order:
//
//	open    length 4 | method, codec, compressor, timeout, metadata
//	header  length 4 | compressor, metadata
//	trailer length 4 | code, message, details, metadata
//	first   message length 4
//	landed  key 4
//	data    the rest
//
// One frame can therefore be a whole request or a whole response. Where blocks are longer than a frame, all but the end
// of that payload comes in kindMore frames right before it, as HTTP/2 has its continuations.
const (
	headerLen  = 12
	maxPayload = 64 << 10
	// maxBlocks is up to which length open, header and trailer together share a frame with data.
	maxBlocks     = 48 << 10
	defaultBlocks = 16 << 20
	maxData       = maxPayload - 16
)

type kind uint8

const (
	kindHello  kind = iota + 1 // first frame of each side: version, window, streams, whether messages may land
	kindStream                 // a piece of a call
	kindWindow                 // the peer may send so many more bytes of messages
	kindReset                  // client: the call is given up
	// server: open no more streams here; with a number 4 it ends, and knows of no stream behind that one
	kindGoAway
	kindMore    // the beginning of the payload of the next frame, which is of the same stream
	kindGrant   // memory that a long message may be written to: key 4, length 4, address 8
	kindReturn  // a grant that is not used: key 4
	kindPlacing // a message is being written to a grant: nothing follows
	kindPing    // does the peer live? Nothing follows
	kindPong    // it does
	numKinds
)

type flags uint8

const (
	fOpen flags = 1 << iota
	fHeader
	fTrailer
	fFirst // the data begins a message
	fData
	fPacked // the message is compressed
	fEnd    // the sender's side of the stream ends with this frame
	fSink   // the message was written to the grant that the frame names
)

var errFrame = errors.New("malformed frame")

// frame is a parsed frame. Its slices are valid until the next read.
type frame struct {
	kind                  kind
	flags                 flags
	stream                uint32
	open, header, trailer []byte
	total                 int    // message length, with fFirst
	key                   uint32 // of the grant, with fLanded
	data                  []byte
	placed                int // data that is in the message already, instead of data
}

func (f *frame) has(x flags) bool { return f.flags&x != 0 }

func putHeader(b []byte, payload int, k kind, fl flags, stream uint32) {
	binary.LittleEndian.PutUint32(b, uint32(payload))
	b[4], b[5], b[6], b[7] = byte(k), byte(fl), 0, 0
	binary.LittleEndian.PutUint32(b[8:], stream)
}

func payloadLen(h []byte) (int, error) {
	n := binary.LittleEndian.Uint32(h)
	if n > maxPayload || h[4] == 0 || kind(h[4]) >= numKinds || h[6]|h[7] != 0 {
		return 0, fmt.Errorf("%w: header % x", errFrame, h[:headerLen])
	}
	return int(n), nil
}

func parseFrame(b []byte) (f frame, err error) {
	f = frame{kind: kind(b[4]), flags: flags(b[5]), stream: binary.LittleEndian.Uint32(b[8:])}
	d := decoder{b: b[headerLen:]}
	if f.kind != kindStream {
		f.data = d.b
		if f.flags != 0 {
			return f, fmt.Errorf("%w: flags %#x on kind %d", errFrame, b[5], f.kind)
		}
		return f, nil
	}
	for _, p := range []struct {
		flag flags
		to   *[]byte
	}{{fOpen, &f.open}, {fHeader, &f.header}, {fTrailer, &f.trailer}} {
		if f.has(p.flag) {
			*p.to = d.bytes()
		}
	}
	if f.has(fFirst) {
		f.total = int(d.u32())
	}
	if f.has(fSink) {
		f.key = d.u32()
	}
	f.data = d.b
	switch {
	case d.bad, f.has(fFirst|fPacked) && !f.has(fData), f.has(fSink) && (!f.has(fFirst) || len(f.data) > 0),
		f.has(fTrailer) && !f.has(fEnd),
		len(f.data) > 0 && !f.has(fData), f.has(fFirst) && f.total < len(f.data):
		return f, fmt.Errorf("%w: stream frame with flags %#x and %d bytes", errFrame, b[5], len(b)-headerLen)
	}
	return f, nil
}

// decoder takes values off the front of b; bad stays set after the first that is missing.
type decoder struct {
	b   []byte
	bad bool
}

func (d *decoder) take(n uint32) []byte {
	if d.bad || uint64(n) > uint64(len(d.b)) {
		d.bad = true
		return nil
	}
	p := d.b[:n:n]
	d.b = d.b[n:]
	return p
}

func (d *decoder) u32() uint32 {
	if p := d.take(4); p != nil {
		return binary.LittleEndian.Uint32(p)
	}
	return 0
}

func (d *decoder) u64() uint64 {
	if p := d.take(8); p != nil {
		return binary.LittleEndian.Uint64(p)
	}
	return 0
}

func (d *decoder) bytes() []byte { return d.take(d.u32()) }

func (d *decoder) text() string { return string(d.bytes()) }

func appendBytes[T string | []byte](b []byte, v T) []byte {
	return append(binary.LittleEndian.AppendUint32(b, uint32(len(v))), v...)
}

func appendBlock(b []byte, fill func([]byte) []byte) []byte {
	at := len(b)
	b = fill(append(b, 0, 0, 0, 0))
	binary.LittleEndian.PutUint32(b[at:], uint32(len(b)-at-4))
	return b
}

type openBlock struct {
	method     string
	codec      string // content subtype: "proto" unless the caller chose another
	compressor string
	authority  string        // of this call; empty for the connection's
	timeout    time.Duration // 0 for none
	md         metadata.MD
}

func (o *openBlock) append(b []byte) []byte {
	b = appendBytes(b, o.method)
	b = appendBytes(b, o.codec)
	b = appendBytes(b, o.compressor)
	b = appendBytes(b, o.authority)
	b = binary.LittleEndian.AppendUint64(b, uint64(o.timeout))
	return appendMD(b, o.md)
}

func parseOpen(b []byte) (o openBlock, err error) {
	d := decoder{b: b}
	o.method, o.codec, o.compressor = d.text(), d.text(), d.text()
	o.authority = d.text()
	o.timeout = time.Duration(d.u64())
	o.md = d.md()
	if o.authority != "" {
		if o.md == nil {
			o.md = metadata.MD{}
		}
		o.md[":authority"] = []string{o.authority}
	}
	if d.bad || len(d.b) > 0 || o.timeout < 0 {
		return o, fmt.Errorf("%w: open", errFrame)
	}
	return o, nil
}

func appendHeader(b []byte, compressor string, md metadata.MD) []byte {
	return appendMD(appendBytes(b, compressor), md)
}

func parseHeader(b []byte) (compressor string, md metadata.MD, err error) {
	d := decoder{b: b}
	compressor, md = d.text(), d.md()
	if d.bad || len(d.b) > 0 {
		err = fmt.Errorf("%w: header", errFrame)
	}
	return compressor, md, err
}

// appendTrailer ends a call. Only a status with details is carried as a message.
func appendTrailer(b []byte, st *status.Status, md metadata.MD) []byte {
	var details []byte
	if p := st.Proto(); len(p.GetDetails()) > 0 {
		details, _ = proto.Marshal(p) // what cannot be encoded travels without its details
	}
	b = binary.LittleEndian.AppendUint32(b, uint32(st.Code()))
	// Invalid UTF-8 becomes U+FFFD, as in gRPC's percent encoding.
	b = appendBytes(b, string([]rune(st.Message())))
	b = appendBytes(b, details)
	return appendMD(b, md)
}

func parseTrailer(b []byte) (st *status.Status, md metadata.MD, err error) {
	d := decoder{b: b}
	code, text, details := codes.Code(d.u32()), d.text(), d.bytes()
	md = d.md()
	if d.bad || len(d.b) > 0 {
		return nil, nil, fmt.Errorf("%w: trailer", errFrame)
	}
	st = status.New(code, text)
	if len(details) > 0 {
		var p spb.Status
		if proto.Unmarshal(details, &p) == nil {
			st = status.FromProto(&p)
		}
	}
	return st, md, nil
}

func appendMD(b []byte, md metadata.MD) []byte {
	at, n := len(b), uint32(0)
	b = append(b, 0, 0, 0, 0)
	for k, vs := range md {
		if reserved(k) {
			continue
		}
		for _, v := range vs {
			b = appendBytes(appendBytes(b, k), v)
			n++
		}
	}
	binary.LittleEndian.PutUint32(b[at:], n)
	return b
}

func (d *decoder) md() metadata.MD {
	n := d.u32()
	if n == 0 || d.bad {
		return nil
	}
	md := metadata.MD{}
	for range n {
		k, v := d.text(), d.text()
		if d.bad {
			return nil
		}
		if !reserved(k) {
			md[k] = append(md[k], v)
		}
	}
	return md
}
