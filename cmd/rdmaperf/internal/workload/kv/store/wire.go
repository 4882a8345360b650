package store

import (
	"encoding/binary"
	"errors"
	"math/bits"
	"sync"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/kv/ycsb"
)

// Methods of the service.
const (
	methodGet = iota
	methodPut
	methodPatch
	methodScan
	numMethods
)

// request is what every method takes:
//
//	key length 4 | offset 4 | count 4 | key | value
//
// offset is Patch's; count is how many records the answer may hold, for which a server
// makes room. A response is the time of the store and a value:
//
//	store time 8, ns | value
type request struct {
	key, value    []byte
	offset, count uint32
}

const (
	requestHeader  = 12
	responseHeader = 8
)

// MaxRequest is the longest request of records of so many bytes, and MaxResponse the
// longest response, with up to so many records.
func MaxRequest(record int) int { return requestHeader + ycsb.MaxKey + record }

// MaxResponse is the longest response of up to so many records of so many bytes.
func MaxResponse(record, records int) int {
	return responseHeader + min(records*(record+ycsb.MaxKey+recordHeader), maxAnswer)
}

func (m *request) append(b []byte) []byte {
	b = binary.LittleEndian.AppendUint32(b, uint32(len(m.key)))
	b = binary.LittleEndian.AppendUint32(b, m.offset)
	b = binary.LittleEndian.AppendUint32(b, m.count)
	return append(append(b, m.key...), m.value...)
}

// decode reads a request, which refers to b.
func (m *request) decode(b []byte) error {
	if len(b) < requestHeader {
		return errors.New("decode request: cut off")
	}
	n := uint64(binary.LittleEndian.Uint32(b))
	m.offset, m.count = binary.LittleEndian.Uint32(b[4:]), binary.LittleEndian.Uint32(b[8:])
	if b = b[requestHeader:]; n > uint64(len(b)) {
		return errors.New("decode request: key cut off")
	}
	m.key, m.value = b[:n:n], b[n:]
	return nil
}

// buffer is memory for one answer, or for a request that arrived in pieces. It is its own
// transports.Releaser.
type buffer struct{ b []byte }

// pools hold buffers of 1<<i bytes.
var pools [bits.UintSize]sync.Pool

// poolFrom: shorter buffers are made new, which costs no more. 1 KiB, as gRPC has it.
const poolFrom = 10

// newBuffer has room for n bytes.
func newBuffer(n int) *buffer {
	class := bits.Len(uint(max(n, 1) - 1))
	if class <= poolFrom {
		return &buffer{make([]byte, 0, n)}
	}
	if b, ok := pools[class].Get().(*buffer); ok {
		return b
	}
	return &buffer{make([]byte, 0, 1<<class)}
}

// Release gives it back. A buffer that outgrew its class is kept in that of its length.
func (b *buffer) Release() {
	class := bits.Len(uint(cap(b.b))) - 1
	if class <= poolFrom {
		return
	}
	b.b = b.b[:0]
	pools[class].Put(b)
}
