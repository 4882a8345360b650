package rpc

import (
	"testing"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine/enginetest"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload"
)

func TestMain(m *testing.M) {
	enginetest.Main(m, workload.Table(new(Workload)))
}
