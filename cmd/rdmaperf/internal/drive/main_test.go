package drive_test

import (
	"testing"
	"time"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/catalogue"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/drive"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine/enginetest"
)

// idleWindow is that of users: the tests have a shorter one.
var idleWindow = drive.IdleWindow

func TestMain(m *testing.M) {
	enginetest.Main(m, catalogue.Table())
}

// Both sides of calls are watched doing nothing for long enough that pauses of a poller are many,
// and each point begins soon all the same.
func TestIdleSidesAreWatchedForAWhile(t *testing.T) {
	if idleWindow < 100*time.Millisecond || idleWindow > time.Second {
		t.Errorf("for %v", idleWindow)
	}
}
