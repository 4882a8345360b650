package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/catalogue"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload"
	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// withTestWorkloads makes the server children of a test know the workloads of this file, too.
const withTestWorkloads = "RDMAPERF_TEST_WORKLOADS"

// addTestWorkloads lists them for the test's life, here and in its children.
func addTestWorkloads(t *testing.T) {
	t.Helper()
	before := catalogue.All
	listTestWorkloads()
	t.Cleanup(func() { catalogue.All = before })
	t.Setenv(withTestWorkloads, "1")
}

// listTestWorkloads adds two workloads: one registers memory on a device, the other adds up with several server
// processes. They are what a new workload has to write.
func listTestWorkloads() {
	before := catalogue.All
	catalogue.All = func() []workload.Workload { return append(before(), new(pinWorkload), sumWorkload{}) }
}

type pinDetail struct {
	Registrations int     `json:"registrations"`
	MeanNs        float64 `json:"mean_ns"`
}

func (*pinDetail) Member(string) string { return "testpin" }

var pinResults = &reports.Workload{
	Name: "testpin", Title: "Registration, as a test has it", Intro: "Registration, as a test has it.",
	Figures: []reports.FigureDef{{Name: "registrations", Quantity: reports.QuantityCount, Better: reports.More,
		Help: "in the window"}},
	Shown:  []string{"registrations"},
	Detail: func() reports.Detail { return new(pinDetail) },
	Describe: func(w *reports.Workload, r *reports.Result) {
		r.Figures = reports.FiguresOf(w.Figures, float64(reports.DetailOf[pinDetail](r).Registrations))
	},
}

type pinOptions struct{ Rounds int }

type pinWorkload struct {
	engine.ClientOnly
	o pinOptions
}

func (*pinWorkload) Meta() workload.Meta {
	return workload.Meta{Name: "testpin", Sizes: []int{4096}, Results: pinResults}
}

func (f *pinWorkload) Flags(set *pflag.FlagSet) {
	set.IntVar(&f.o.Rounds, "testpin-rounds", 3, "testpin: rounds")
}

func (f *pinWorkload) Points(c *workload.Common) (points []engine.Point, err error) {
	for _, n := range c.SizesOf("", f.Meta().Sizes) {
		points = append(points, engine.Point{Workload: "testpin", Alone: true, Size: n,
			Options: engine.PackOptions(f.o)})
	}
	return points, nil
}

// Client registers memory on a device of its own.
func (*pinWorkload) Client(ctx context.Context, r *engine.Run) error {
	var o pinOptions
	if err := r.Point.Options.Unpack(&o); err != nil {
		return err
	}
	if _, ok := ctx.Deadline(); !ok {
		return errors.New("a run without a deadline")
	}
	dev, err := r.Open.Device(r.Plan.Transport)
	if err != nil {
		return err
	}
	defer dev.Close()
	buf, err := rdma.Alloc(r.Point.Size)
	if err != nil {
		return err
	}
	defer buf.Free()
	begin := time.Now()
	for i := range o.Rounds {
		mr, err := dev.RegMR(0, buf, rdma.LocalWrite)
		if err != nil {
			return err
		}
		if err := mr.Close(); err != nil {
			return err
		}
		r.Progress(int64(i+1), int64(o.Rounds))
	}
	res := r.Result()
	d := time.Since(begin)
	res.Operations, res.DurationNs = int64(o.Rounds), int64(d)
	res.Detail = &pinDetail{Registrations: o.Rounds, MeanNs: float64(d) / float64(o.Rounds)}
	r.Add(res)
	return nil
}

type sumWorkload struct{}

func (sumWorkload) Meta() workload.Meta {
	return workload.Meta{Name: "testsum", Results: &reports.Workload{Name: "testsum"}}
}

func (sumWorkload) Flags(*pflag.FlagSet) {}

func (sumWorkload) Points(*workload.Common) ([]engine.Point, error) {
	return []engine.Point{{Workload: "testsum", Size: 8}}, nil
}

// sumAnswer says which process had added up to what.
type sumAnswer struct{ Sum, PID int }

// Client adds with three servers, each in a process of its own.
func (sumWorkload) Client(ctx context.Context, r *engine.Run) error {
	links := []*engine.Link{r.Peer}
	for range 2 {
		l, err := r.Process(ctx)
		if err != nil {
			return err
		}
		links = append(links, l)
	}
	processes := map[int]bool{os.Getpid(): true}
	var last sumAnswer
	for round := range 3 {
		for i, l := range links {
			if err := l.Send(10*i + round); err != nil {
				return err
			}
			if err := l.Receive(ctx, &last); err != nil {
				return err
			}
			processes[last.PID] = true
		}
	}
	if last.Sum != 20+21+22 || len(processes) != 4 || links[1].Host() == "" {
		return fmt.Errorf("last sum %d, %d processes", last.Sum, len(processes))
	}
	res := r.Result()
	res.Operations, res.DurationNs = 9, 1
	r.Add(res)
	return nil
}

// Server ends with the error of Receive, which is io.EOF at the end of the run.
func (sumWorkload) Server(ctx context.Context, s *engine.Serve) error {
	sum := 0
	for {
		var n int
		if err := s.Peer.Receive(ctx, &n); err != nil {
			return err
		}
		if n < 0 {
			return errors.New("it counts upwards")
		}
		sum += n
		if err := s.Peer.Send(sumAnswer{sum, os.Getpid()}); err != nil {
			return err
		}
	}
}

func TestAWorkloadRunsOnItsOwn(t *testing.T) {
	addTestWorkloads(t)
	file := filepath.Join(t.TempDir(), "r.json")
	r := rdmaperf(t, "run", "--transport", "iwarp,mem", "--workload", "testpin", "-s", "4K,64K", "-n", "5",
		"--testpin-rounds", "7", "--repeat", "2", "--json", file, "--details")
	if r.code != 0 || strings.Count(r.stdout, "Registration, as a test has it") == 0 {
		t.Fatalf("exit code %d\n%s%s", r.code, r.stdout, r.stderr)
	}
	d := documentOf(t, file)
	if len(d.Results) != 2*2*2 {
		t.Fatalf("%d results, want 8", len(d.Results))
	}
	for _, res := range d.Results {
		if p := reports.DetailOf[pinDetail](&res); p == nil || p.Registrations != 7 || res.Operations != 7 ||
			res.Stack == "" || res.Label == "" || res.Repeat == 0 {
			t.Errorf("%+v: detail %+v", res, p)
		}
	}
	if want := "testpin-rounds"; !strings.Contains(rdmaperf(t, "run", "--help", "testpin").stdout, want) {
		t.Errorf("the help lacks --%s", want)
	}
}

func TestAWorkloadHasServersOfItsOwn(t *testing.T) {
	addTestWorkloads(t)
	d := measure(t, "run", "--transport", "iwarp", "--workload", "latency,testsum", "--op", "send", "-s", "64", "-n",
		"5", "--warmup", "0")
	if d := d; len(d.Results) != 2 || d.Results[1].Workload != "testsum" ||
		d.Results[1].Operations != 9 {
		t.Fatalf("results %+v", d.Results)
	}
}
