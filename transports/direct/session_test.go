package direct

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/rdmaperf/rdmaperf/transports"
	"github.com/rdmaperf/rdmaperf/transports/internal/sessiontest"
	"github.com/rdmaperf/rdmaperf/transports/memdev"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// inMemory makes both transports of one fabric.
func inMemory(cfg memdev.Config) sessiontest.Open {
	return func(t testing.TB) (near, far transports.Transport, addr string) {
		f := memdev.NewFabric(cfg)
		var devs [2]*memdev.Device
		for i, name := range []string{"near", "far"} {
			d, err := f.Open(name)
			if err != nil {
				t.Fatal(err)
			}
			devs[i] = d
		}
		return New(devs[0]), New(devs[1]), "far:0"
	}
}

func TestSessions(t *testing.T) { sessiontest.Run(t, inMemory(memdev.Config{})) }
