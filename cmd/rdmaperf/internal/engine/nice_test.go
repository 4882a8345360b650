package engine_test

import (
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine/enginetest"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/latency"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/throughput"
	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/transports"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// Only who polls a device that is the kernel goes to the end of the queue by itself.
func TestStreamsOverKernelDevicesAreNice(t *testing.T) {
	kernel := transports.Caps{Unaided: true, Label: rdma.LabelSoft}
	for _, c := range []struct {
		name     string
		caps     transports.Caps
		workload string
		polling  string
		nice     int
		want     int
	}{
		{"stream", kernel, throughput.Name, engine.PollingBusy, engine.NiceAuto, engine.MostNice},
		{"adaptive stream", kernel, throughput.Name, engine.PollingAdaptive, engine.NiceAuto, engine.MostNice},
		{"sleeping stream", kernel, throughput.Name, engine.PollingEvent, engine.NiceAuto, 0},
		{"not wanted", kernel, throughput.Name, engine.PollingBusy, engine.NiceNone, 0},
		{"latency", kernel, latency.Name, engine.PollingBusy, engine.NiceAuto, 0},
		{"latency, asked for", kernel, latency.Name, engine.PollingBusy, 5, 5},
		{"adapter", transports.Caps{Unaided: true, Label: rdma.LabelDevice}, throughput.Name, engine.PollingBusy,
			engine.NiceAuto, 0},
		{"user space", transports.Caps{Label: rdma.LabelSoft}, throughput.Name, engine.PollingBusy, engine.NiceAuto, 0},
		{"memory", transports.Caps{Unaided: true, Label: rdma.LabelMem}, throughput.Name, engine.PollingBusy,
			engine.NiceAuto, 0},
	} {
		c.caps.Kinds, c.caps.MaxMsg, c.caps.Events = transports.Kinds(transports.KindSend), 1<<20, true
		p := &engine.Plan{QPs: 1, Threads: 1, Polling: c.polling, Nice: c.nice}
		sh, err := engine.NewSetup(p, engine.Point{Op: "send", Size: 64}, c.caps, c.caps).Shape(ends[c.workload].shape)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
		} else if sh.Nice != c.want {
			t.Errorf("%s: nice value %d, want %d", c.name, sh.Nice, c.want)
		}
	}
}

// Both sides' workers have the nice value while they work, and no thread keeps it.
func TestNiceThreadsAreTheWorkers(t *testing.T) {
	const nice = 7
	if n := len(threadsWith(t, nice)); n != 0 {
		t.Fatalf("%d threads have the nice value %d before the run", n, nice)
	}
	plan := enginetest.QuickPlan(engine.Point{Workload: throughput.Name, Op: "send", Size: 64})
	plan.Nice, plan.Iterations, plan.WarmupIterations, plan.Duration = nice, 0, 0, 100*time.Millisecond
	most, done := 0, make(chan struct{})
	go func() {
		defer close(done)
		results, err := enginetest.RunPoints(t, enginetest.MemEnds, plan)
		if err != nil {
			t.Error(err)
		} else if got := results[0].Parameters["worker_nice"]; got != nice {
			t.Errorf("worker_nice is %v, want %d", got, nice)
		}
	}()
	for ended := false; !ended; {
		most = max(most, len(threadsWith(t, nice)))
		select {
		case <-done:
			ended = true
		default:
			time.Sleep(time.Millisecond)
		}
	}
	if most != 2 {
		t.Errorf("at most %d threads had the nice value, want one of each side", most)
	}
	for end := time.Now().Add(5 * time.Second); len(threadsWith(t, nice)) > 0; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("a thread with the nice value is still there")
		}
	}
}

func threadsWith(t *testing.T, nice int) (tids []int) {
	for _, tid := range engine.Threads(nil) {
		b, err := os.ReadFile("/proc/self/task/" + strconv.Itoa(tid) + "/stat")
		if err != nil {
			continue // it has ended
		}
		_, rest, _ := strings.Cut(string(b), ") ")
		const niceField = 19 - 3 // proc_pid_stat(5); the state, behind the name, is the third
		f := strings.Fields(rest)
		if len(f) <= niceField {
			t.Fatalf("stat of thread %d: %q", tid, b)
		}
		if f[niceField] == strconv.Itoa(nice) {
			tids = append(tids, tid)
		}
	}
	return tids
}

func TestLimitsAreCheckedBeforeAnythingRuns(t *testing.T) {
	all := transports.Caps{Kinds: ^transports.KindSet(0), MaxMsg: 8 << 20, MaxSessions: 100, MaxDepth: 1024,
		MaxReadDepth: 16, MaxInline: 64}
	for _, c := range []struct {
		what string
		edit func(*engine.Plan, *transports.Caps)
		text string // empty: no error
	}{
		{"within", func(p *engine.Plan, _ *transports.Caps) { p.QPs = 100 }, ""},
		{"one QP too many", func(p *engine.Plan, _ *transports.Caps) { p.QPs = 101 },
			"101 QPs are above the device's limit of 100"},
		{"a point of a sweep", func(p *engine.Plan, _ *transports.Caps) { p.Points[0].QPs = 400 }, "400 QPs are above"},
		{"no limit known", func(p *engine.Plan, c *transports.Caps) { p.QPs, c.MaxSessions = 4096, 0 }, ""},
		{"connections of calls are no sessions", func(p *engine.Plan, c *transports.Caps) {
			p.QPs, p.Points[0].Op, c.MaxConns = 1024, "call", 1024
		}, ""},
		{"and have a limit of their own", func(p *engine.Plan, c *transports.Caps) {
			p.QPs, p.Points[0].Op, c.MaxConns = 65, "call", 64
		}, "65 connections are above the limit of 64"},
		{"a message too long", func(p *engine.Plan, _ *transports.Caps) { p.Points[0].Size = 8<<20 + 1 },
			"size 8388609 is above the limit of 8388608 bytes"},
		{"too much inline", func(p *engine.Plan, _ *transports.Caps) { p.Inline = 65 }, "inline 65 is above"},
		{"two at once", func(p *engine.Plan, _ *transports.Caps) {
			p.QPs = 101
			p.Points = append(p.Points, engine.Point{Workload: latency.Name, Op: "read", Size: 16 << 20, QPs: 1})
		}, "101 QPs are above the device's limit of 100, size 16777216"},
	} {
		plan, caps := enginetest.QuickPlan(engine.Point{Workload: latency.Name, Op: "write", Size: 64}), all
		c.edit(&plan, &caps)
		err := engine.Check(&plan, "verbs:rxe0", caps)
		switch {
		case c.text == "" && err != nil:
			t.Errorf("%s: %v", c.what, err)
		case c.text != "" && (reports.Code(err) != reports.ExitUsage ||
			!strings.Contains(err.Error(), "check verbs:rxe0: "+c.text)):
			t.Errorf("%s: %v (exit %d), want %q", c.what, err, reports.Code(err), c.text)
		}
	}
}
