package verbs

import (
	"testing"

	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

func TestPagingIsDeclaredForEveryOperation(t *testing.T) {
	base := rdma.Ops(rdma.OpSend, rdma.OpWrite, rdma.OpRead)
	atomic := base | rdma.Ops(rdma.OpFetchAdd, rdma.OpCmpSwap)
	const all = odpSend | odpRecv | odpWrite | odpRead
	for _, c := range []struct {
		name    string
		general uint64
		rc      uint32
		ops     rdma.OpSet
		feat    rdma.Features
		want    bool
	}{
		{"all of rxe", 1, 0xff, atomic, rdma.FeatSRQ, true},
		{"what is used", 1, all, base, 0, true},
		{"nothing in general", 0, 0xff, atomic, rdma.FeatSRQ, false},
		{"implicit alone", 2, 0xff, base, 0, false},
		{"no send", 1, all &^ odpSend, base, 0, false},
		{"no receive", 1, all &^ odpRecv, base, 0, false},
		{"no write", 1, all &^ odpWrite, base, 0, false},
		{"no read", 1, all &^ odpRead, base, 0, false},
		{"no atomics", 1, all | odpSRQRecv, atomic, rdma.FeatSRQ, false},
		{"no shared receive queue", 1, all | odpAtomic, atomic, rdma.FeatSRQ, false},
		{"datagrams alone", 1, 0, base, 0, false},
	} {
		if got := mayFault(c.general, c.rc, rdma.Caps{Ops: c.ops, Features: c.feat}); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}
