package callstest

import (
	"testing"

	"github.com/rdmaperf/rdmaperf/internal/leaktest"
	"github.com/rdmaperf/rdmaperf/transports"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

func TestTheReferenceKeepsTheContract(t *testing.T) {
	Run(t, func(t *testing.T) (client, server transports.CallTransport) {
		m := new(Mem)
		t.Cleanup(func() { m.Close() })
		return m, m
	})
}
