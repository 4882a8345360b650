package run

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/values"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload"
)

func parseWarmup(s string) (int64, time.Duration, error) {
	switch s {
	case "auto":
		return 1000, 200 * time.Millisecond, nil
	case "none", "0":
		return 0, 0, nil
	}
	if n, err := strconv.ParseInt(s, 10, 40); err == nil && n > 0 {
		return n, 0, nil
	}
	d, err := time.ParseDuration(s)
	if err != nil || d <= 0 {
		return 0, 0, fmt.Errorf("%q: want auto, none, a number of operations or a time such as 200ms", s)
	}
	return 0, d, nil
}

// parseNice reads --nice. 0 asks for what auto would change.
func parseNice(s string) (int, error) {
	if s == "auto" {
		return engine.NiceAuto, nil
	}
	n, err := strconv.Atoi(s)
	if err != nil || n < 0 || n > engine.MostNice {
		return 0, fmt.Errorf("%q: want auto or a nice value of 0 to %d", s, engine.MostNice)
	}
	if n == 0 {
		return engine.NiceNone, nil
	}
	return n, nil
}

// parsePin reads --pin; CPUs are -1 without pinning. alone: the server is on this machine, too.
func parsePin(s string, threads int, allowed []int, alone bool) (auto bool, client, server int, err error) {
	switch s {
	case "auto":
		return true, -1, -1, nil
	case "none":
		return false, -1, -1, nil
	}
	if _, err := fmt.Sscanf(s+"\n", "%d,%d\n", &client, &server); err != nil || client < 0 || server < 0 ||
		client > 1023 || server > 1023 {
		return false, -1, -1, fmt.Errorf("%q: want auto, none or two CPUs such as 3,2", s)
	}
	if threads > 1 {
		return false, -1, -1, fmt.Errorf("%q: one CPU a side cannot hold %d threads", s, threads)
	}
	for _, side := range []struct {
		name string
		cpu  int
		here bool
	}{{"client", client, true}, {"server", server, alone}} {
		if side.here && !slices.Contains(allowed, side.cpu) {
			return false, -1, -1, fmt.Errorf("%q: the %s's CPU %d is none that this process may run on: %s", s,
				side.name, side.cpu, ranges(allowed))
		}
	}
	return false, client, server, nil
}

// ranges prints rising numbers as taskset(1) takes them: 0-3,8.
func ranges(rising []int) string {
	var parts []string
	for i := 0; i < len(rising); {
		k := i
		for k+1 < len(rising) && rising[k+1] == rising[k]+1 {
			k++
		}
		if part := strconv.Itoa(rising[i]); k > i {
			parts = append(parts, part+"-"+strconv.Itoa(rising[k]))
		} else {
			parts = append(parts, part)
		}
		i = k + 1
	}
	return strings.Join(parts, ",")
}

// LoopAuto leaves the loop of ping-pongs to what the stacks have.
const LoopAuto = "auto"

func parseLoop(s string) (string, error) {
	switch s {
	case LoopAuto:
		return "", nil
	case engine.LoopPlain, engine.LoopProvider:
		return s, nil
	}
	return "", fmt.Errorf("%q: want %s, %s or %s", s, LoopAuto, engine.LoopPlain, engine.LoopProvider)
}

// shareLoop gives all stacks the plain loop where one has no other, unless --loop says which: a ratio of two loops is
// none of two stacks. A device with a clock of its own is timed by its provider.
func (m *runner) shareLoop() {
	if m.p.base.Loop != "" {
		return
	}
	var timed []*arm
	for _, a := range m.arms {
		if a.tr.Caps().Clock == nil && slices.ContainsFunc(a.plan.Points, func(pt engine.Point) bool {
			return pt.Needs.PingPong
		}) {
			timed = append(timed, a)
		}
	}
	if !slices.ContainsFunc(timed, func(a *arm) bool { return !a.tr.Caps().PingPong }) {
		return
	}
	for _, a := range timed {
		a.plan.Loop = engine.LoopPlain
	}
}

// isBare tells whether nothing says what to measure, with or without a HOST.
func isBare(f *pflag.FlagSet) bool {
	bare := true
	f.Visit(func(f *pflag.Flag) {
		bare = bare && (slices.Contains(reaching, f.Name) || slices.Contains(printing, f.Name))
	})
	return bare
}

// reaching are flags that say how a server is reached, and not what is measured with it.
var reaching = []string{"port", "token-file", "tls", "tls-ca", "tls-cert", "tls-key", "tls-server-name", "no-wait",
	"timeout"}

// printing are flags that say what is done with the results.
var printing = []string{"output", "export", "json", "force", "no-save", "save", "format", "details", "report_gbits",
	"counters", "cpu-profile", "metrics-listen", "metrics-push", "metrics-textfile", "quiet", "verbose"}

// splitHost reads the HOST of a command line: a name or an address, with a port or without, in brackets where needed:
// node7:19000, fe80::1%eth0, [::1]:19000. port is that of --port; given: the user chose it.
func splitHost(arg string, port int, given bool) (string, int, error) {
	host, own, err := arg, "", error(nil)
	switch {
	case strings.Contains(arg, "://") || strings.ContainsAny(arg, "/@ "):
		return "", 0, fmt.Errorf("HOST %q: want a name or an address, and a port at most", arg)
	case strings.HasPrefix(arg, "[") && strings.HasSuffix(arg, "]"):
		host = arg[1 : len(arg)-1]
	case strings.HasPrefix(arg, "[") || strings.Count(arg, ":") == 1:
		if host, own, err = net.SplitHostPort(arg); err != nil {
			return "", 0, fmt.Errorf("HOST %q: want HOST, HOST:PORT or [ADDRESS]:PORT", arg)
		}
	}
	if host == "" {
		return "", 0, fmt.Errorf("HOST %q is empty", arg)
	}
	if strings.Contains(host, ":") {
		if _, err := netip.ParseAddr(host); err != nil {
			return "", 0, fmt.Errorf(
				"HOST %q is no address: a port behind one of IPv6 needs brackets, [::1]:18515", arg)
		}
	}
	if host == arg || own == "" && strings.HasSuffix(arg, "]") {
		return host, port, nil
	}
	n, err := strconv.ParseUint(own, 10, 16)
	if err != nil || n == 0 {
		return "", 0, fmt.Errorf("HOST %q: port %q: want 1 to 65535", arg, own)
	}
	if given && int(n) != port {
		return "", 0, fmt.Errorf("HOST %q and --port %d name two ports", arg, port)
	}
	return host, int(n), nil
}

type loadFlags struct {
	rate        float64
	sweep       string
	arrivals    string
	interval    string
	appWork     string
	qpSweep     string
	outstanding string
	neighbours  string
}

func (l *loadFlags) register(f *pflag.FlagSet) {
	f.Float64Var(&l.rate, "rate", 0,
		"open loop: so many operations per second\nof latency, timed from their intended starts (default closed loop)")
	values.ListVar(f, &l.sweep, "rate-sweep", "", "latency at several rates: a comma list or FROM:TO:STEP")
	f.StringVar(&l.arrivals, "arrivals", engine.ArrivalsConstant, "arrivals of --rate: constant or poisson")
	values.ListVar(f, &l.appWork, "app-work", "0",
		"time that the server computes per received send, send_imm or write_imm in latency and throughput: a comma "+
			"list such as 0,5us,50us")
	values.ListVar(f, &l.qpSweep, "qp-sweep", "",
		"latency and throughput for several numbers of QPs, instead of --qp: a comma list or FROM:TO:STEP; "+
			"--threads is the maximum")
	values.ListVar(f, &l.outstanding, "outstanding", "",
		"rpc, kv, tensor: outstanding calls per connection (--qp), a goroutine each: a comma list or FROM:TO:STEP "+
			"(default --tx-depth, else 1)")
	values.ListVar(f, &l.neighbours, "neighbours", "0",
		"competing processes that spin on this machine during each measurement, at the same priority: a comma list "+
			"such as 0,1,2,4")
	f.StringVar(&l.interval, "interval", "",
		"report each interval, such as 1s, during the measurement and in the result (default none)")
}

func (l *loadFlags) axes(c *workload.Common) (err error) {
	if c.Rates, err = l.rates(c.Changed); err != nil {
		return err
	}
	c.QPs, c.Outstanding = []int{0}, []int{0}
	if c.AppWork, err = values.Works("app-work", l.appWork); err != nil {
		return err
	}
	if c.Changed("qp-sweep") {
		if c.QPs, err = values.Counts("qp-sweep", l.qpSweep); err != nil {
			return err
		}
	}
	if l.outstanding != "" {
		c.Outstanding, err = values.Counts("outstanding", l.outstanding)
	}
	return err
}

func (l *loadFlags) series(changed func(string) bool) (time.Duration, error) {
	if !changed("interval") {
		return 0, nil
	}
	return values.Duration(l.interval)
}

// rates are the open loops asked for; one rate of 0 is the closed loop.
func (l *loadFlags) rates(changed func(string) bool) ([]float64, error) {
	switch {
	case changed("rate") && l.rate <= 0:
		return nil, values.Wrong("rate", "%v: want more than 0", l.rate)
	case changed("rate"):
		return []float64{l.rate}, nil
	case changed("rate-sweep"):
		return values.Sweep("rate-sweep", l.sweep)
	case changed("arrivals"):
		return nil, values.Wrong("arrivals", "only for --rate and --rate-sweep")
	}
	return []float64{0}, nil
}
