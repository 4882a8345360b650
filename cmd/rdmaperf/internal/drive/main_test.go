package drive_test

import (
	"testing"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/catalogue"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine/enginetest"
)

func TestMain(m *testing.M) {
	enginetest.Main(m, catalogue.Table())
}
