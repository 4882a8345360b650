package memdev

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// same fails with the difference.
func same[T any](t testing.TB, what string, got, want T) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

func TestLocalInvalidateRevokesBothKeys(t *testing.T) {
	for _, byRKey := range []bool{true, false} {
		a, b, _ := newPair(t, Config{})
		w := wr(rdma.OpLocalInv, 1)
		if w.InvKey = b.mr.LKey(); byRKey {
			w.InvKey = b.mr.RKey()
		}
		b.post(w)
		same(t, "local_inv", drain(t, b.sq), []rdma.WC{{ID: 1, QPNum: b.qp.Num(), Opcode: rdma.WCLocalInv}})
		a.post(b.at(0, wr(rdma.OpWrite, 2, a.sge(0, 4))))
		same(t, "write afterwards", outcomes(t, a.sq), all(rdma.StatusRemAccessErr, 2))
	}
}

func TestWordNeighboursSurviveTheLastByte(t *testing.T) {
	b := must(rdma.Alloc(64))(t)
	defer b.Free()
	for i := range b.Bytes() {
		b.Bytes()[i] = 0xee
	}
	for i := range 8 {
		storeByte(&b.Bytes()[8+i], byte(i))
		if got := rdma.LoadByte(b.Bytes(), 8+i); got != byte(i) {
			t.Errorf("byte %d = %#x, want %#x", i, got, i)
		}
	}
	if b.Bytes()[7] != 0xee || b.Bytes()[16] != 0xee {
		t.Error("a neighbour changed")
	}
}
