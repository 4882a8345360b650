package results

import (
	"testing"

	"github.com/rdmaperf/rdmaperf/reports/reporttest"
)

func TestSchemaHasEveryMember(t *testing.T) { reporttest.Described(t, Results) }
