package hol

import (
	"testing"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine/enginetest"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/latency"
)

func TestMain(m *testing.M) {
	enginetest.Main(m, workload.Table(new(Workload), new(latency.Workload)))
}
