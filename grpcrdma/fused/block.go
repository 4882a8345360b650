package fused

import (
	"encoding/binary"
	"fmt"
	"time"

	spb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

// openBlock begins a call.
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
	// What is no UTF-8 becomes U+FFFD a byte, as in gRPC's percent encoding.
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

// appendMD carries keys and values as they are: a binary value needs no encoding here.
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
