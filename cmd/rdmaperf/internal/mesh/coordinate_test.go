package mesh

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/devices"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/mesh/results"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/mesh/verdict"
	"github.com/rdmaperf/rdmaperf/internal/fulltest"
	"github.com/rdmaperf/rdmaperf/reports"
)

// pipes is a listener whose connections are in memory.
type pipes struct {
	conns chan net.Conn
	once  sync.Once
	done  chan struct{}
}

func newPipes() *pipes { return &pipes{conns: make(chan net.Conn), done: make(chan struct{})} }

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}
func (p *pipes) Close() error   { p.once.Do(func() { close(p.done) }); return nil }
func (p *pipes) Addr() net.Addr { return &net.UnixAddr{Name: "pipes"} }

func (p *pipes) dial() net.Conn {
	near, far := net.Pipe()
	p.conns <- far
	return near
}

// actor is a simulated rank: what it does with a task.
type actor func(t *Task, c *conn) *Done

// wellBehaved has the figures of a pair by a function of its two ranks; nil: none is slow.
func wellBehaved(slow func(from, to int) bool) actor {
	return func(t *Task, _ *conn) *Done {
		d := &Done{ID: t.ID}
		factor := 1.0
		if slow != nil && slow(t.From, t.To) {
			factor = 4
		}
		for _, p := range t.Points {
			r := reports.Result{Stack: "sim", Label: reports.LabelMem, Op: "send", SizeBytes: 64, Depth: 1, QPs: 1,
				Operations: 1, DurationNs: 1}
			if p == 0 {
				r.Latency = &reports.Latency{Count: 1, P50: 1000 * factor}
			} else {
				r.Throughput = reports.NewThroughput(int64(1e9/factor), 1, time.Second)
			}
			d.Results = append(d.Results, r)
		}
		return d
	}
}

// play is a rank until it is released; it returns why it was refused.
func play(c *conn, h *Hello, act actor) (refused string) {
	defer c.Close()
	c.send(greeting("k"), &message{Hello: h})
	for {
		m, err := c.receive()
		switch {
		case err != nil || m.End:
			return ""
		case m.Refuse != "":
			return m.Refuse
		case m.Ping != 0:
			c.send(m)
		case m.Task != nil:
			if d := act(m.Task, c); d != nil {
				c.send(&message{Done: d})
			} else {
				<-hung
			}
		}
	}
}

// hung is never closed: who waits for it does not answer.
var hung = make(chan int)

func hello(r, n int) *Hello {
	return &Hello{Rank: r, Size: n, Host: fmt.Sprintf("n%d", r), Machine: fmt.Sprintf("m%d", r),
		CPUs: []int{0, 1}, Addr: fmt.Sprintf("10.0.0.%d:1", r%250), Facts: map[string]string{"kernel": "6.1"}}
}

func simStack() Stack {
	return Stack{Spec: "sim", Like: reports.Result{Stack: "sim", Label: reports.LabelMem, Depth: 1, QPs: 1},
		Plan:     engine.Plan{Points: []engine.Point{{Op: "send", Size: 64}, {Op: "write", Size: 1 << 20}}},
		Measures: []string{results.Latency, results.Bandwidth}, Bad: []float64{2, 0.5}}
}

// sim is a mesh of n simulated ranks. What is not given is: the stack sim, all rounds, shifts by 1 and 2, a minute for a
// task, and ranks that are well-behaved.
type sim struct {
	n      int
	stack  *Stack
	rounds [][]verdict.Link
	shifts []int
	limit  time.Duration
	slow   func(from, to int) bool
	act    func(h *Hello) actor // may also change what the rank says of itself
}

// run is the coordinator of the ranks, which has measured them.
func (s sim) run(t testing.TB) *coordinator {
	t.Helper()
	if s.stack == nil {
		stack := simStack()
		s.stack = &stack
	}
	if s.rounds == nil {
		s.rounds = verdict.All(s.n)
	}
	p := newPipes()
	for r := range s.n {
		h := hello(r, s.n)
		act := wellBehaved(s.slow)
		if s.act != nil {
			act = s.act(h)
		}
		go func() { play(newConn(p.dial()), h, act) }()
	}
	members, missing := gather(context.Background(), p, s.n, "k")
	if len(missing) > 0 {
		t.Fatalf("missing: %v", missing)
	}
	c := newCoordinator(members, []byte("token"), []Stack{*s.stack}, cmp.Or(s.limit, time.Minute))
	defer c.end()
	if s.shifts == nil {
		s.shifts = []int{1, 2}
	}
	if err := c.rounds(context.Background(), s.rounds, s.shifts); err != nil {
		t.Fatal(err)
	}
	return c
}

// Of a path that is slow on some connections many are tried, and the sentence says on how many it was slow.
func TestAPathThatIsSlowOnSomeConnectionsIsTriedOnMany(t *testing.T) {
	for every, want := range map[int64]string{
		1: "the path between n1 and n4 is slow on each of 22 connections",
		3: "the path between n1 and n4 is slow on 22 of 70 connections, as if one of several equal paths were",
	} {
		var there, back atomic.Int64
		c := sim{n: 6, slow: func(from, to int) bool {
			switch {
			case from == 1 && to == 4:
				return (there.Add(1)-1)%every == 0
			case from == 4 && to == 1:
				return (back.Add(1)-1)%every == 0
			}
			return false
		}}.run(t)
		s := results.Summarise(c.results)
		if len(s.Findings) != 1 || s.Sentence(&s.Findings[0]) != want {
			t.Errorf("one of %d: %v", every, s.Findings)
			for i := range s.Findings {
				t.Log(s.Sentence(&s.Findings[i]))
			}
		}
	}
}

// Where all is slower while a pair is measured again, that is no evidence against the pair.
func TestAPathIsNotSlowWhereAllPairsAreForAWhile(t *testing.T) {
	const n = 6
	var tasks atomic.Int64
	c := sim{n: n, slow: func(from, to int) bool {
		first := tasks.Add(1) <= n*(n-1) // a task for each direction
		return !first || from+to == 5 && from*to == 4
	}}.run(t)
	if s := results.Summarise(c.results); len(s.Findings) != 0 {
		t.Errorf("%v", s.Findings)
	}
	if !slices.ContainsFunc(c.results, func(r reports.Result) bool { return r.Detail.(*results.Mesh).Control }) {
		t.Error("no good pair was measured beside the bad one")
	}
}

// A pair without an address family in common would fail for ever: it is left out, with one line.
func TestPairsWithoutAnAddressFamilyInCommonAreLeftOut(t *testing.T) {
	const n = 4
	families := [n][]string{{"IPv4", "IPv6"}, {"IPv4"}, {"IPv6"}, nil} // of the last nothing is known
	c := sim{n: n, act: func(h *Hello) actor {
		h.Families = map[string][]string{"sim": families[h.Rank]}
		return wellBehaved(nil)
	}}.run(t)
	pairs := map[verdict.Link]bool{}
	for i := range c.results {
		d := c.results[i].Detail.(*results.Mesh)
		pairs[verdict.LinkOf(d.From, d.To)] = true
	}
	if len(pairs) != 5 || pairs[verdict.Link{A: 1, B: 2}] || len(c.apart) != 1 {
		t.Errorf("measured %v, left out %v", pairs, c.apart)
	}
	var out strings.Builder
	f := &found{size: n, apart: slices.Collect(maps.Keys(c.apart))}
	f.text(&out, &reports.Document{Results: c.results})
	want := "Left out, without an address family in common: 1 pair of hosts, " +
		"such as n1 (GIDs\n  of IPv4) and n2 (IPv6) over sim.\n"
	if !strings.Contains(out.String(), want) {
		t.Errorf("%s", out.String())
	}
}

func TestFamiliesAreThoseOfThePortsGIDs(t *testing.T) {
	port := func(n int, state string, gids ...devices.GID) devices.Port {
		return devices.Port{Number: n, State: state, GIDs: gids}
	}
	v4, v6 := devices.GID{GID: "::ffff:10.0.0.1", Type: "RoCE v2"}, devices.GID{GID: "fe80::1", Type: "RoCE v1"}
	devs := []devices.Device{
		{Name: "mlx5_0", Ports: []devices.Port{port(1, "DOWN", v6), port(2, "ACTIVE", v4, v4)}},
		{Name: "mlx5_1", Ports: []devices.Port{port(1, "ACTIVE", v6, v4)}},
		{Name: "ib0", Ports: []devices.Port{port(1, "ACTIVE", devices.GID{GID: "fe80::2", Type: "IB"})}},
	}
	specs := []string{"verbs", "verbs:mlx5_0", "verbs:mlx5_1", "verbs:ib0", "tcp", "sched+verbs:mlx5_1", "verbs:none"}
	got := families(specs, devs)
	want := map[string][]string{"verbs": {"IPv4"}, "verbs:mlx5_0": {"IPv4"}, "verbs:mlx5_1": {"IPv6", "IPv4"},
		"sched+verbs:mlx5_1": {"IPv6", "IPv4"}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

func findings(c *coordinator) string { return fmt.Sprint(results.Summarise(c.results).Findings) }

func TestEachPairIsMeasuredInBothDirections(t *testing.T) {
	const n = 7
	c := sim{n: n}.run(t)
	seen := map[string]int{}
	for i := range c.results {
		d := c.results[i].Detail.(*results.Mesh)
		seen[fmt.Sprint(d.Measure, d.From, d.To)]++
		r := &c.results[i]
		if d.Failed != "" || r.Transport != "sim" || r.Workload != "mesh" || len(r.Dims) != 5 {
			t.Fatalf("%+v, %+v", d, r)
		}
	}
	if want := n * (n - 1) * 3 / 2; len(seen) != want || len(c.results) != want {
		t.Errorf("%d figures, %d of them different, want %d", len(c.results), len(seen), want)
	}
	if got := findings(c); got != "[]" {
		t.Errorf("found %s", got)
	}
}

func TestASlowHostIsNamedAndMeasuredAgain(t *testing.T) {
	c := sim{n: 8, slow: func(from, to int) bool { return from == 5 || to == 5 }}.run(t)
	s := results.Summarise(c.results)
	if got := findings(c); got != "[host [5]]" || s.Sentence(&s.Findings[0]) != "n5 is slow in both directions" {
		t.Fatalf("found %s, %q", got, s.Sentence(&s.Findings[0]))
	}
	lines := strings.Join(s.Evidence(&s.Findings[0]), "\n")
	if !strings.Contains(lines, "with 7 of 7, 42 of 42 times again") ||
		!strings.Contains(lines, "latency over sim: 4 µs, 4x of the 1 µs of good pairs") {
		t.Errorf("evidence: %s", lines)
	}
}

// A rank that ends, or that hangs until a deadline, costs its pairs and no others.
func TestALostRankCostsItsPairs(t *testing.T) {
	const n, lost = 6, 2
	for why, act := range map[string]actor{
		"it ended":                 func(_ *Task, c *conn) *Done { c.Close(); return &Done{} },
		"did not end within 300ms": func(*Task, *conn) *Done { return nil },
	} {
		c := sim{n: n, limit: 300 * time.Millisecond, act: func(h *Hello) actor {
			if h.Rank != lost {
				return wellBehaved(nil)
			}
			return act
		}}.run(t)
		if gone := c.gone(); len(gone) != 1 || !strings.Contains(gone[lost], why) {
			t.Errorf("%s: gone: %v", why, gone)
		}
		good := map[verdict.Link]bool{}
		for i := range c.results {
			d := c.results[i].Detail.(*results.Mesh)
			if d.Failed == "" {
				good[verdict.LinkOf(d.From, d.To)] = true
			} else if d.From != lost && d.To != lost || !d.Gone {
				t.Errorf("%s: %+v failed", why, d)
			}
		}
		if want := (n - 1) * (n - 2) / 2; len(good) < want {
			t.Errorf("%s: %d pairs have figures, want %d", why, len(good), want)
		}
		if got := findings(c); got != "[]" {
			t.Errorf("%s: found %s", why, got)
		}
	}
}

// A rank that no other reaches and that answers rank 0 has lost its paths and not its life.
func TestARankThatOthersDoNotReachIsABadHost(t *testing.T) {
	c := sim{n: 6, act: func(*Hello) actor {
		return func(task *Task, c *conn) *Done {
			if task.From == 1 || task.To == 1 {
				return &Done{ID: task.ID, Code: reports.ExitPeer, Error: "no answer within 5s"}
			}
			return wellBehaved(nil)(task, c)
		}
	}}.run(t)
	if gone := c.gone(); len(gone) != 0 {
		t.Errorf("gone: %v", gone)
	}
	if got := findings(c); got != "[host [1]]" {
		t.Errorf("found %s", got)
	}
}

func TestPairsOfAMachineWaitForItsProcessors(t *testing.T) {
	var mu sync.Mutex
	now, most := 0, 0
	sim{n: 8, act: func(h *Hello) actor {
		h.Machine = "one"
		return func(task *Task, c *conn) *Done {
			mu.Lock()
			now++
			most = max(most, now)
			mu.Unlock()
			time.Sleep(time.Millisecond)
			mu.Lock()
			now--
			mu.Unlock()
			return wellBehaved(nil)(task, c)
		}
	}}.run(t)
	if most != 1 {
		t.Errorf("%d pairs at once on two processors, want 1", most)
	}
}

func TestMissingRanksAreNamedWithWhatWasSeen(t *testing.T) {
	p := newPipes()
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		defer cancel()
		first := p.dial()
		newConn(first).send(greeting("k"), &message{Hello: hello(0, 3)})
		time.Sleep(50 * time.Millisecond) // until it is taken
		for why, lines := range map[string][]*message{
			"it is of another run, or has another token": {greeting("x")},
			"it is rank 1 of 4, and this run has 3":      {greeting("k"), {Hello: hello(1, 4)}},
			"it speaks version 9":                        {{Magic: magic, Version: 9, Key: "k"}},
			"rank 0 is there already":                    {greeting("k"), {Hello: hello(0, 3)}},
			"it did not say which rank it is":            {greeting("k"), {}},
			"it is no rank of rdmaperf mesh":             {{}},
		} {
			c := newConn(p.dial())
			c.send(lines...)
			if got, err := c.receive(); err != nil || !strings.Contains(got.Refuse, why) {
				t.Errorf("refused with %+v, %v; want %q", got, err, why)
			}
		}
	}()
	members, missing := gather(ctx, p, 3, "k")
	if members[0] == nil || members[1] != nil || len(missing) != 2 ||
		!strings.HasPrefix(missing[1], "it never connected; pipe did: it") {
		t.Errorf("missing: %v", missing)
	}
}

func TestWhyRankZeroIsNotReachedIsToldApart(t *testing.T) {
	for want, err := range map[string]error{
		"the name does not resolve": &net.OpError{Err: &net.DNSError{Err: "no such host", IsNotFound: true}},
		"refuses the port":          &net.OpError{Err: syscall.ECONNREFUSED},
		"the host is silent":        context.DeadlineExceeded,
	} {
		if got := dialCause(err); !strings.Contains(got.Error(), want) {
			t.Errorf("%v: %v, want %q", err, got, want)
		}
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	l.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
	defer cancel()
	_, _, err = join(ctx, []string{addr}, "k", func(net.Conn) *Hello { return hello(1, 2) })
	if err == nil || !strings.Contains(err.Error(), "refuses the port") || reports.Code(err) != reports.ExitPeer {
		t.Errorf("%v", err)
	}
}

func TestHostsThatDifferFromMostAreNamed(t *testing.T) {
	var members []*member
	for r := range 5 {
		h := hello(r, 5)
		if r == 3 {
			h.Facts = map[string]string{"kernel": "5.10", "mlx5_0 firmware": "28"}
		}
		members = append(members, &member{Hello: h})
	}
	var got []string
	for _, d := range differences(append(members, nil)) {
		got = append(got, d.String())
	}
	want := []string{"kernel: 6.1 on 4; 5.10 on n3", "mlx5_0 firmware: none on 4; 28 on n3"}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// Rank 0 of ten thousand: the coordinator is the real one, over links in memory. The simulated ranks' own time is in
// the figure.
func TestTenThousandRanksAreCoordinated(t *testing.T) {
	fulltest.Only(t, "ten thousand ranks")
	var cpu time.Duration
	var after syscall.Rusage
	for _, n := range []int{100, 1000, 10_000} {
		var before syscall.Rusage
		syscall.Getrusage(syscall.RUSAGE_SELF, &before)
		rounds := verdict.Nearest(n, 2)
		c := sim{n: n, rounds: rounds, slow: func(from, to int) bool { return from == 77 || to == 77 }}.run(t)
		syscall.Getrusage(syscall.RUSAGE_SELF, &after)
		cpu = time.Duration(after.Utime.Nano() + after.Stime.Nano() - before.Utime.Nano() - before.Stime.Nano())
		t.Logf("| %d | %d | %.2g s | %d MiB |", n, links(rounds), cpu.Seconds(), after.Maxrss>>10)
		if got := findings(c); got != "[host [77]]" {
			t.Errorf("%d ranks: found %s", n, got)
		}
	}
	if cpu > 30*time.Second || after.Maxrss > 1<<20 { // it takes 6 s of a machine whose pace changes by three
		t.Errorf("%v of CPU and %d KiB, want at most 30 s and 1 GiB", cpu, after.Maxrss)
	}
}
