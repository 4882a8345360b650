package tensor

import (
	"testing"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine/enginetest"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/room"
)

func TestMain(m *testing.M) {
	enginetest.Main(m, room.Table(Room))
}
