package mesh

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/transports"
)

// A stack that is closed while it is opened or used would be freed under who uses it.
func TestARankEndsOnlyAfterItsMeasurement(t *testing.T) {
	near, far := net.Pipe()
	entered, release := make(chan int), make(chan int)
	r := &rank{conn: newConn(near), welcome: &welcome{Plans: []engine.Plan{{}}},
		open: func(string) (transports.Stack, error) {
			close(entered)
			<-release
			return nil, errors.New("no stack")
		}}
	ended := make(chan error, 1)
	go func() { ended <- r.run(context.Background()) }()
	zero := newConn(far)
	zero.send(&message{Task: &Task{ID: 1}})
	<-entered
	zero.send(&message{End: true})
	select {
	case err := <-ended:
		t.Errorf("the rank ended while it measured: %v", err)
	case <-time.After(50 * time.Millisecond):
	}
	close(release)
	go zero.receive() // what came of the task
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestALongFirstLineIsRefused(t *testing.T) {
	for name, first := range map[string]string{"greeting": "{\"magic\":\"" + strings.Repeat("x", mostGreeting),
		"hello": "{\"magic\":\"" + magic + "\",\"version\":2,\"key\":\"k\"}\n{\"hello\":\"" +
			strings.Repeat("x", mostHello)} {
		near, far := net.Pipe()
		go near.Write([]byte(first + "\"}\n"))
		if a := greet(far, 2, "k"); a.m != nil || !strings.HasPrefix(a.why, "it said nothing") &&
			a.why != "it did not say which rank it is" {
			t.Errorf("%s: %+v", name, a)
		}
		near.Close()
	}
}
