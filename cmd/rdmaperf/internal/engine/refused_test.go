package engine_test

import (
	"bufio"
	"encoding/json"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine/enginetest"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/latency"
	"github.com/rdmaperf/rdmaperf/reports"
)

// What a server says before it closes arrives, also where the client's next line cannot be
// written any more: what it said arrived before.
func TestClientSeesWhyTheServerClosed(t *testing.T) {
	_, tr := enginetest.MemServer(t, &engine.Server{Workloads: enginetest.Table})
	plan := enginetest.QuickPlan(engine.Point{Workload: latency.Name, Op: "send", Size: 64})
	t.Run("before the plan", func(t *testing.T) {
		here, there := net.Pipe()
		go func() {
			io.WriteString(there, why) // reads nothing: the plan cannot be written
			there.Close()
		}()
		c, err := engine.ConnectConn(t.Context(), here, tr, plan)
		if err == nil {
			c.Close()
		}
		sawWhy(t, err)
	})

	t.Run("before a point", func(t *testing.T) {
		here, there := net.Pipe()
		closed := make(chan struct{})
		go func() {
			defer close(closed)
			defer there.Close()
			caps, err := json.Marshal(tr.Caps())
			if err != nil {
				t.Error(err)
			}
			r := bufio.NewReader(there)
			r.ReadString('\n')
			io.WriteString(there, greeting+`"type":"welcome"}`+"\n")
			r.ReadString('\n')
			io.WriteString(there, greeting+`"type":"accept","accept":{"stack":"mem","caps":`+string(caps)+
				`,"max_window_bytes":1048576}}`+"\n")
			io.WriteString(there, why)
		}()
		c, err := engine.ConnectConn(t.Context(), here, tr, plan)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		<-closed
		_, err = c.Run(t.Context(), 0)
		sawWhy(t, err)
	})
}

func sawWhy(t *testing.T, err error) {
	t.Helper()
	if reports.Code(err) != reports.ExitNotRun || !strings.Contains(err.Error(), "no device") {
		t.Errorf("error %v (exit %d), want what the server said and exit 77", err, reports.Code(err))
	}
}
