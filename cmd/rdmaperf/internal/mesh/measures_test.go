package mesh

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/mesh/launch"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/mesh/results"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/stackspec"
	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/transports"
)

// Rank 3 takes slowly only when all send at once, which no pair by itself shows.
func TestMeasuresOfManyRanksAtOnceNameWhatPairsDoNot(t *testing.T) {
	const n = 6
	for _, m := range []string{results.Shift, results.ManyToOne} {
		stack := simStack()
		stack.Plan.Points = slices.Repeat([]engine.Point{{Op: "write", Size: 1 << 20}}, 3)
		stack.Measures = []string{results.Bandwidth, m, results.Allreduce}
		stack.Bad = []float64{0.5, 0.5, 0.5}
		var mu sync.Mutex
		var reduced []string
		c := sim{n: n, stack: &stack, shifts: new(Options).shifts(n), act: func(*Hello) actor {
			return func(task *Task, _ *conn) *Done {
				d := &Done{ID: task.ID}
				for _, point := range task.Points {
					bytes := int64(1e9)
					if point == 1 && task.To == 3 {
						bytes /= 4
					}
					d.Results = append(d.Results, reports.Result{Stack: "sim", Op: "write",
						Throughput: reports.NewThroughput(bytes, 1, time.Second)})
				}
				if task.Points[0] == 2 {
					mu.Lock()
					reduced = append(reduced, fmt.Sprintf("%d %d %d %s", task.From, task.To, len(task.More), task.More[n-2]))
					mu.Unlock()
				}
				return d
			}
		}}.run(t)
		s := results.Summarise(c.results)
		if got := fmt.Sprint(s.Findings); got != "[takes [3]]" {
			t.Errorf("%s: found %s", m, got)
		}
		if len(s.Allreduces) != 1 || fmt.Sprint(reduced) != "[0 1 5 10.0.0.0:1]" {
			t.Errorf("%s: %d all-reduces, tasks %q", m, len(s.Allreduces), reduced)
		}
		of := 0
		for _, x := range s.Measures {
			if x.Name == m {
				of = len(x.Values)
			}
		}
		if of != n*(n-1) {
			t.Errorf("%s: %d directions, want %d", m, of, n*(n-1))
		}
	}
}

func TestPairsOfAFileAreRead(t *testing.T) {
	name := filepath.Join(t.TempDir(), "pairs")
	for text, want := range map[string]string{
		"0 1\n# all\n\n3 2 # last\n1 0\n": "[{0 1} {2 3}]",
		"0 4\n":                           ":1: want two ranks from 0 to 3",
		"0 1\n2\n":                        ":2: want two ranks",
		"1 1\n":                           ":1: want two ranks",
		"0 1 2\n":                         ":1: want two ranks",
		"# none\n":                        "names no pair",
	} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		links, err := readPairs(name, 4)
		if got := fmt.Sprint(links, err); !strings.Contains(got, want) {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
}

func TestAShareOfWhatTheLinkCarriesIsALimit(t *testing.T) {
	var f failIf
	if err := f.Set("share < 90%"); err != nil {
		t.Fatal(err)
	}
	c := sim{n: 2, act: func(h *Hello) actor {
		h.Expected = map[string]float64{"sim": float64(h.Rank+1) * 1.25e9} // a pair has that of its worse end
		return wellBehaved(nil)
	}}.run(t)
	doc := &reports.Document{Results: c.results}
	lines, err := reports.CheckThresholds(doc, f.thresholds)
	if err != nil || len(lines) != 1 || !strings.Contains(lines[0], "share 0.8") {
		t.Errorf("%q, %v", lines, err)
	}
	if line := shareOf(results.Bandwidth, "sim", c.results); !strings.Contains(line, "80% to 80% of the 1192 MiB/s") {
		t.Errorf("%q", line)
	}
	if err := new(failIf).Set("share<1.2.3%"); err == nil {
		t.Error("a share that is no number")
	}
}

// A limit on the worst interval divides the windows of every pair.
func TestALimitOfIntervalsDividesWindows(t *testing.T) {
	for limit, want := range map[string]time.Duration{"bw<1GB/s": 0, "interval.bandwidth.min<1GB/s": 10 * time.Millisecond} {
		var o Options
		if err := o.failIf.Set(limit); err != nil {
			t.Fatal(err)
		}
		set := new(stackspec.Set)
		tr, err := set.Open("tcp")
		if err != nil {
			t.Fatal(err)
		}
		p := &plan{window: 100 * time.Millisecond, place: &launch.Place{Size: 2}, measures: []string{results.Bandwidth}}
		s, err := o.pairPlan("tcp", p, tr)
		if err := errors.Join(err, tr.Close()); err != nil || s.Plan.Interval != want {
			t.Errorf("%s: intervals of %v, %v; want %v", limit, s.Plan.Interval, err, want)
		}
	}
}

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
