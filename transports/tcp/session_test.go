package tcp

import (
	"testing"

	"github.com/rdmaperf/rdmaperf/internal/leaktest"
	"github.com/rdmaperf/rdmaperf/transports"
	"github.com/rdmaperf/rdmaperf/transports/internal/sessiontest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

func loopback(cfg Config) sessiontest.Open {
	return func(t testing.TB) (near, far transports.Transport, addr string) {
		return New(cfg), New(cfg), "127.0.0.1:0"
	}
}

func TestSessions(t *testing.T) { sessiontest.Run(t, loopback(Config{})) }

// A send buffer of the kernel's least size ends nearly every large send inside a
// piece; a receive buffer as small would add nothing but delayed ACKs.
func TestSessionsWithTinyBuffers(t *testing.T) {
	sessiontest.Run(t, loopback(Config{SendBuffer: 1, RecvBuffer: 64 << 10}))
}

func TestASendWaitsForItsReceive(t *testing.T) { sessiontest.RunLateReceive(t, loopback(Config{})) }
