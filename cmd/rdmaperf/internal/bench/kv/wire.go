package kv

import (
	"encoding/binary"
	"errors"
	"fmt"

	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/mem"
)

// request is what every method takes:
//
//	key length 4 | offset 4 | count 4 | key | value
//
// offset is Patch's; count is how many records the answer may hold, for which a server
// makes room.
type request struct {
	key, value    []byte
	offset, count uint32

	held mem.Buffer // what a received one lies in
}

// response is what every method gives:
//
//	store time 8, ns | value
//
// A server builds it in data, which the codec then owns; a client reads data in held.
type response struct {
	data []byte
	pool *[]byte // what data is a prefix of; nil when the pool does not want it back
	held mem.Buffer
}

const (
	requestHeader  = 12
	responseHeader = 8
)

const codecName = "rdmaperf-kv"

// gRPC takes codecs while programs initialise only.
func init() { encoding.RegisterCodecV2(codec{}) }

type codec struct{}

func (codec) Name() string { return codecName }

func (codec) Marshal(v any) (mem.BufferSlice, error) {
	switch m := v.(type) {
	case *request:
		b, pooled := buffer(requestHeader + len(m.key) + len(m.value))
		binary.LittleEndian.PutUint32(b, uint32(len(m.key)))
		binary.LittleEndian.PutUint32(b[4:], m.offset)
		binary.LittleEndian.PutUint32(b[8:], m.count)
		copy(b[requestHeader+copy(b[requestHeader:], m.key):], m.value)
		return sendable(b, pooled), nil
	case *response:
		return sendable(m.data, m.pool), nil
	}
	return nil, fmt.Errorf("encode %T: no message of this service", v)
}

// buffer has n bytes; pooled is nil for sizes that gRPC does not pool.
func buffer(n int) (b []byte, pooled *[]byte) {
	if mem.IsBelowBufferPoolingThreshold(n) {
		return make([]byte, n), nil
	}
	pooled = mem.DefaultBufferPool().Get(n)
	return *pooled, pooled
}

func sendable(b []byte, pooled *[]byte) mem.BufferSlice {
	if pooled == nil {
		return mem.BufferSlice{mem.SliceBuffer(b)}
	}
	*pooled = b
	return mem.BufferSlice{mem.NewBuffer(pooled, mem.DefaultBufferPool())}
}

func (codec) Unmarshal(data mem.BufferSlice, v any) error {
	switch m := v.(type) {
	case *request:
		return m.decode(data)
	case *response:
		m.held = data.MaterializeToBuffer(mem.DefaultBufferPool())
		if m.data = m.held.ReadOnlyData(); len(m.data) < responseHeader {
			m.free()
			return errors.New("decode response: cut off")
		}
		return nil
	}
	return fmt.Errorf("decode %T: no message of this service", v)
}

func (m *request) decode(data mem.BufferSlice) error {
	m.held = data.MaterializeToBuffer(mem.DefaultBufferPool())
	b := m.held.ReadOnlyData()
	if len(b) < requestHeader {
		m.free()
		return errors.New("decode request: cut off")
	}
	n := uint64(binary.LittleEndian.Uint32(b))
	m.offset, m.count = binary.LittleEndian.Uint32(b[4:]), binary.LittleEndian.Uint32(b[8:])
	if b = b[requestHeader:]; n > uint64(len(b)) {
		m.free()
		return errors.New("decode request: key cut off")
	}
	m.key, m.value = b[:n:n], b[n:]
	return nil
}

func (m *request) free() {
	if m.held != nil {
		m.held.Free()
	}
	*m = request{}
}

func (m *response) free() {
	if m.held != nil {
		m.held.Free()
	}
	*m = response{}
}
