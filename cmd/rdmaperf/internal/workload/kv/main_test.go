package kv

import (
	"testing"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine/enginetest"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/rpc"
)

func TestMain(m *testing.M) {
	enginetest.Main(m, work(), rpc.Room.Work)
}
