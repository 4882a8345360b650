package kinds

import (
	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/reports/kinds/calls"
	"github.com/rdmaperf/rdmaperf/reports/kinds/connect"
	"github.com/rdmaperf/rdmaperf/reports/kinds/hol"
	"github.com/rdmaperf/rdmaperf/reports/kinds/incast"
	"github.com/rdmaperf/rdmaperf/reports/kinds/kv"
	"github.com/rdmaperf/rdmaperf/reports/kinds/latency"
	"github.com/rdmaperf/rdmaperf/reports/kinds/paramserver"
	"github.com/rdmaperf/rdmaperf/reports/kinds/starvation"
	"github.com/rdmaperf/rdmaperf/reports/kinds/throughput"
)

// All are those below this folder, in the order in which they appear where several do.
func All() []*reports.Kind {
	return []*reports.Kind{latency.Kind, throughput.Kind, incast.Kind, connect.Kind, starvation.Kind, paramserver.Kind, hol.Kind, calls.Kind, calls.TensorKind, kv.Kind}
}
