package carrier

import (
	"fmt"

	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/mem"

	"github.com/rdmaperf/rdmaperf/transports"
)

// message is what neutral calls send and receive: bytes without a schema, so that the figure is that of what carries
// them. Its codec copies nothing and allocates a header, the same for every form: it is sent from where it lies and
// received as gRPC holds it.
type message struct {
	mem.NopBufferPool // for Get: nothing is taken from here

	bytes []byte              // to send
	owner transports.Releaser // of them

	got   mem.BufferSlice
	parts transports.Parts // of got; its memory is kept for the next
}

// received is what arrived, until free.
func (m *message) received() transports.Parts {
	m.parts = m.parts[:0]
	for _, b := range m.got {
		m.parts = append(m.parts, b.ReadOnlyData())
	}
	return m.parts
}

// free gives what was received back to gRPC. Idempotent.
func (m *message) free() {
	m.got.Free()
	m.got = nil
}

// Put is mem.BufferPool's, by which gRPC releases m.bytes. It does not for short ones.
func (m *message) Put(*[]byte) { m.owner.Release() }

const codecName = "rdmaperf"

// gRPC takes codecs while programs initialise only.
func init() { encoding.RegisterCodecV2(codec{}) }

type codec struct{}

func (codec) Name() string { return codecName }

func (codec) Marshal(v any) (mem.BufferSlice, error) {
	m, ok := v.(*message)
	if !ok {
		return nil, fmt.Errorf("encode %T: want bytes without a schema", v)
	}
	if m.owner == nil {
		return mem.BufferSlice{mem.SliceBuffer(m.bytes)}, nil
	}
	return mem.BufferSlice{mem.NewBuffer(&m.bytes, m)}, nil
}

func (codec) Unmarshal(data mem.BufferSlice, v any) error {
	m, ok := v.(*message)
	if !ok {
		return fmt.Errorf("decode %T: want bytes without a schema", v)
	}
	data.Ref()
	m.got.Free()
	m.got = data
	return nil
}
