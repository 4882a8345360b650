package memdev

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

func TestSendWriteReadMoveBytes(t *testing.T) {
	a, b, _ := newPair(t, Config{})
	copy(a.buf.Bytes(), "hello")
	b.recv(7, b.sge(100, 16))
	a.post(wr(rdma.OpSend, 1, a.sge(0, 5)),
		b.at(200, wr(rdma.OpWrite, 2, a.sge(0, 5))),
		b.at(200, wr(rdma.OpRead, 3, a.sge(300, 5))))
	if diff := cmp.Diff(good(1, 2, 3), outcomes(t, a.sq)); diff != "" {
		t.Errorf("requester's completions (-want +got):\n%s", diff)
	}
	want := []rdma.WC{{ID: 7, QPNum: b.qp.Num(), ByteLen: 5, Opcode: rdma.WCRecv}}
	if diff := cmp.Diff(want, drain(t, b.rq)); diff != "" {
		t.Errorf("responder's completions (-want +got):\n%s", diff)
	}
	for name, got := range map[string][]byte{"send": b.buf.Bytes()[100:105], "write": b.buf.Bytes()[200:205], "read": a.buf.Bytes()[300:305]} {
		if string(got) != "hello" {
			t.Errorf("%s delivered %q, want hello", name, got)
		}
	}
}
