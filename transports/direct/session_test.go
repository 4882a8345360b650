package direct

import (
	"testing"

	"github.com/rdmaperf/rdmaperf/internal/leaktest"
	"github.com/rdmaperf/rdmaperf/softstack/iwarp"
	"github.com/rdmaperf/rdmaperf/transports"
	"github.com/rdmaperf/rdmaperf/transports/internal/sessiontest"
	"github.com/rdmaperf/rdmaperf/transports/memdev"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

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

func TestASendWaitsForItsReceive(t *testing.T) {
	sessiontest.RunLateReceive(t, inMemory(memdev.Config{}))
}

// The same claims hold over a device with a socket below it and local completion.
func TestSessionsOverIWARP(t *testing.T) {
	sessiontest.Run(t, func(t testing.TB) (near, far transports.Transport, addr string) {
		var ts [2]transports.Transport
		for i := range ts {
			d, err := iwarp.Open(iwarp.Config{})
			if err != nil {
				t.Fatal(err)
			}
			ts[i] = New(d)
		}
		return ts[0], ts[1], "127.0.0.1:0"
	})
}
