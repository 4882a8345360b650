package rdma_test

import (
	"testing"

	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// TestEdgesNeedWhatTheManualSays: the numbers of ibv_modify_qp(3) for RC, each attribute
// once, and nothing where there is no edge.
func TestEdgesNeedWhatTheManualSays(t *testing.T) {
	path := []rdma.QPState{rdma.QPReset, rdma.QPInit, rdma.QPRTR, rdma.QPRTS}
	var all rdma.QPAttrs
	for i, want := range []int{3, 6, 5} {
		needs, takes := rdma.AttrsOf(path[i], path[i+1])
		if len(needs.Each()) != want || needs&takes != 0 || needs&all != 0 {
			t.Errorf("%s to %s needs %s and takes %s", path[i], path[i+1], needs, takes)
		}
		all |= needs
	}
	if got := (rdma.AttrPKey | rdma.AttrMaxRDAtomic).String(); got != "pkey_index,max_qp_rd_atomic" {
		t.Error(got)
	}
	for from := rdma.QPReset; from <= rdma.QPErr; from++ {
		for to := rdma.QPReset; to <= rdma.QPErr; to++ {
			if needs, takes := rdma.AttrsOf(from, to); needs|takes != 0 && !rdma.CanTransition(from, to) {
				t.Errorf("%s to %s is no edge and needs %s", from, to, needs)
			}
		}
	}
}
