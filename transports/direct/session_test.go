package direct

import (
	"testing"
	"time"

	"github.com/rdmaperf/rdmaperf/internal/leaktest"
	"github.com/rdmaperf/rdmaperf/softstack/iwarp"
	"github.com/rdmaperf/rdmaperf/transports"
	"github.com/rdmaperf/rdmaperf/transports/internal/sessiontest"
	"github.com/rdmaperf/rdmaperf/transports/memdev"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

func inMemory(cfg memdev.Config) sessiontest.Open {
	return func(t testing.TB) (near, far transports.Transport, addr string) {
		a, b := hosts(t, cfg)
		return New(a), New(b), "far:0"
	}
}

func TestSessions(t *testing.T) { sessiontest.Run(t, inMemory(memdev.Config{})) }

func TestASendWaitsForItsReceive(t *testing.T) {
	sessiontest.RunLateReceive(t, inMemory(memdev.Config{}))
}

// The same claims hold over a device with a socket below it and local completion.
func TestSessionsOverIWARP(t *testing.T) {
	sessiontest.Run(t, func(t testing.TB) (near, far transports.Transport, addr string) {
		return New(must(iwarp.Open(iwarp.Config{}))(t)), New(must(iwarp.Open(iwarp.Config{}))(t)), "127.0.0.1:0"
	})
}

// Reads that take time let fences and the read depth have something to hold.
func TestSessionsWithSlowReads(t *testing.T) {
	sessiontest.Run(t, inMemory(memdev.Config{ReadDelay: 50 * time.Microsecond}))
}
