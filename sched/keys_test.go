package sched

import (
	"errors"
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// memory is n bytes until the end of the test.
func memory(t *testing.T, n int) rdma.Buffer {
	t.Helper()
	b, err := rdma.Alloc(n)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Free() })
	return b
}

// region is a registration of the first half of real memory.
type region struct {
	rdma.Buffer
	access rdma.Access
	busy   error
}

func (m *region) LKey() uint32        { return 7 }
func (m *region) RKey() uint32        { return 7 }
func (m *region) Len() uint64         { return uint64(m.Buffer.Len() / 2) }
func (m *region) Access() rdma.Access { return m.access }
func (m *region) Close() error        { return m.busy }

// The tier writes only into a registration for local writes, of the same domain, until that is closed.
func TestTheTierWritesOnlyWhatItsKeysAllow(t *testing.T) {
	buf := memory(t, 8192)
	var k keyring
	at := buf.Addr()
	mr := &region{Buffer: buf, access: rdma.LocalWrite}
	own := k.add(3, mr)
	may := func(pd rdma.PD, key uint32, addr uint64, n uint32) bool {
		return k.writable(pd, &rdma.SGE{Addr: addr, Len: n, LKey: key})
	}
	if !may(3, 7, at, 4096) || !may(3, 7, at+4095, 1) {
		t.Error("all of it or its last byte is refused")
	}
	for name, ok := range map[string]bool{
		"a byte before it": may(3, 7, at-1, 8), "a byte behind it": may(3, 7, at+4095, 2),
		"more than all": may(3, 7, at, 4097),
		"far away":      may(3, 7, math.MaxUint64-3, 2), "another domain": may(4, 7, at, 8),
		"another key": may(3, 8, at, 8),
	} {
		if ok {
			t.Errorf("%s is written", name)
		}
	}
	mr.access = rdma.RemoteWrite
	if may(3, 7, at, 8) {
		t.Error("a registration without local writes is written")
	}
	mr.access, mr.busy = rdma.LocalWrite, rdma.ErrBusy
	if err := own.Close(); !errors.Is(err, rdma.ErrBusy) || !may(3, 7, at, 8) {
		t.Errorf("a registration that could not be closed: %v, and its key is forgotten", err)
	}
	mr.busy = nil
	other := k.add(3, mr) // the device may give a key again before the first is taken off here
	if err := own.Close(); err != nil || !may(3, 7, at, 8) {
		t.Errorf("closed: %v; the key of the next registration is gone with it", err)
	}
	if err := other.Close(); err != nil || may(3, 7, at, 8) {
		t.Errorf("closed: %v; and is written all the same", err)
	}
}

// Receives are taken in order, and the shortest of them, or the last of none, is known.
func TestShortestReceiveIsKnown(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var b reassembler
		type receive struct {
			id uint64
			n  uint32
		}
		var all []receive
		var last uint32
		b.head = rapid.SampledFrom([]uint32{0, 1, math.MaxUint32 - 7}).Draw(t, "head")
		b.tail = b.head
		for i := range 200 {
			if len(all) == 0 || rapid.IntRange(0, 99).Draw(t, "post") < 55 {
				n := uint32(rapid.IntRange(1, 4).Draw(t, "len"))
				wr := rdma.RecvWR{ID: uint64(i), NumSGE: 1}
				wr.SGE[0].Len = n
				b.posted([]rdma.RecvWR{wr})
				all = append(all, receive{uint64(i), n})
			} else {
				if wr := b.pop(); wr.ID != all[0].id {
					t.Fatalf("receive %d, want %d", wr.ID, all[0].id)
				}
				last, all = all[0].n, all[1:]
			}
			want := last
			for k, r := range all {
				if k == 0 || r.n < want {
					want = r.n
				}
			}
			if b.shortest != want {
				t.Fatalf("%d receives: the shortest is of %d bytes, want %d", len(all), b.shortest, want)
			}
		}
	})
}
