package claims

import (
	"bytes"
	"context"
	"embed"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/rdmaperf/rdmaperf/reports"
)

// tool is another program that measures what a run does. In its commands PORT is a free port, SECONDS the time of a
// window, COUNT its messages, and DIR where its program was built.
type tool struct {
	stack     string // its name in claims
	program   string // that must be in PATH; of a source, its compiler
	packages  string // where Debian has it
	source    string // in peers, built by program; empty: none
	server    string // empty: the client starts its peer
	client    string
	perSecond float64 // messages, about; 0: it takes seconds
	least     float64 // seconds
	figure    reports.Figure
	value     *regexp.Regexp // the last match is the figure, and its unit where there are two groups
	unit      float64        // ns, bytes or operations a second
	environ   []string
}

//go:embed peers/*.c
var sources embed.FS

const (
	windowQuick, windowFull = 0.1, 0.2 // seconds
	longestTool             = 20 * time.Second
)

var units = map[string]float64{"ns": 1, "us": 1e3, "ms": 1e6, "bytes/sec": 1, "KB/sec": 1e3, "MB/sec": 1e6,
	"GB/sec": 1e9}

// prepare finds the program, and builds it in dir where it has a source.
func (t *tool) prepare(ctx context.Context, dir string) error {
	if _, err := exec.LookPath(t.program); err != nil {
		return notHere{fmt.Errorf("%s of %s: apt-get install %s", t.program, t.stack, t.packages)}
	}
	if t.source == "" {
		return nil
	}
	b, err := sources.ReadFile("peers/" + t.source + ".c")
	if err != nil {
		return err
	}
	file := filepath.Join(dir, t.source)
	if err := os.WriteFile(file+".c", b, 0o644); err != nil {
		return err
	}
	if out, err := exec.CommandContext(ctx, t.program, "-O2", "-std=gnu11", "-o", file,
		file+".c").CombinedOutput(); err != nil {
		return fmt.Errorf("build %s.c by %s: %w: %s", t.source, t.program, err, lastLine(string(out)))
	}
	return nil
}

func (t *tool) command(text, dir string, port int, quick bool) string {
	seconds := windowFull
	if quick {
		seconds = windowQuick
	}
	seconds = max(seconds, t.least)
	return strings.NewReplacer("PORT", strconv.Itoa(port), "SECONDS", strconv.FormatFloat(seconds, 'g', -1, 64),
		"COUNT", strconv.Itoa(int(t.perSecond*seconds)), "DIR", dir).Replace(text)
}

func (t *tool) shown(quick bool) string {
	const port = 7777
	line := strings.Join(append(slices.Clone(t.environ), t.command(t.client, ".", port, quick)), " ")
	switch {
	case t.server != "":
		line = strings.Join(append(slices.Clone(t.environ), t.command(t.server, ".", port, quick)), " ") + " & " + line
	case t.source != "":
		line = fmt.Sprintf("%s -O2 -o %s cmd/rdmaperf/internal/claims/peers/%s.c; %s", t.program, t.source, t.source, line)
	}
	return line
}

func (t *tool) measure(ctx context.Context, dir string, quick bool) (reports.Figure, error) {
	f := t.figure
	ctx, cancel := context.WithTimeout(ctx, longestTool)
	defer cancel()
	port, err := freePort()
	if err != nil {
		return f, err
	}
	if t.server != "" {
		server := t.start(ctx, t.command(t.server, dir, port, quick), nil)
		if err := server.Start(); err != nil {
			return f, err
		}
		defer func() {
			server.Process.Signal(syscall.SIGTERM)
			server.Wait()
		}()
		if err := listens(ctx, port); err != nil {
			return f, fmt.Errorf("%s: %w", t.command(t.server, dir, port, quick), err)
		}
	}
	var out bytes.Buffer
	if err := t.start(ctx, t.command(t.client, dir, port, quick), &out).Run(); err != nil {
		return f, fmt.Errorf("%s: %w: %s", t.command(t.client, dir, port, quick), err, lastLine(out.String()))
	}
	f.Value, err = t.read(out.String())
	return f, err
}

// start is a command that gets SIGTERM when its time is over, so that it ends what it started.
func (t *tool) start(ctx context.Context, line string, out *bytes.Buffer) *exec.Cmd {
	args := strings.Fields(line)
	c := exec.CommandContext(ctx, args[0], args[1:]...)
	c.Env = append(os.Environ(), t.environ...)
	if out != nil {
		c.Stdout, c.Stderr = out, out
	}
	c.Cancel, c.WaitDelay = func() error { return c.Process.Signal(syscall.SIGTERM) }, time.Second
	return c
}

func (t *tool) read(out string) (float64, error) {
	all := t.value.FindAllStringSubmatch(out, -1)
	if all == nil {
		return 0, fmt.Errorf("%s prints no figure: %q", t.stack, lastLine(out))
	}
	m, unit := all[len(all)-1], t.unit
	if len(m) > 2 {
		unit = units[m[2]]
	}
	v, err := strconv.ParseFloat(m[1], 64)
	if err == nil && !(v*unit > 0) {
		err = fmt.Errorf("%s prints %s", t.stack, strings.TrimSpace(m[0]))
	}
	return v * unit, err
}

func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}

// listens waits until a process listens at the port, without a connection, which some servers take for their only
// client.
func listens(ctx context.Context, port int) error {
	socket := regexp.MustCompile(fmt.Sprintf(`(?m)^ *\d+: [0-9A-F]+:%04X [0-9A-F:]+ 0A `, port))
	for tick := time.NewTicker(5 * time.Millisecond); ; {
		for _, file := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
			if b, _ := os.ReadFile(file); socket.Match(b) {
				return nil
			}
		}
		select {
		case <-ctx.Done():
			return errors.New("it does not listen")
		case <-tick.C:
		}
	}
}

var (
	pFloorLatency = &tool{stack: "floor", program: "cc", packages: "gcc libc6-dev", source: "floor",
		client: "DIR/floor latency 64 SECONDS", figure: asTime("p50"), value: regexp.MustCompile(`"p50_ns":([0-9.]+)`), unit: 1}
	// A verified stream has a buffer for each message on its way, and copies between so many come from the L3 cache.
	pFloorStream = &tool{stack: "floor", program: "cc", packages: "gcc libc6-dev", source: "floor",
		client: "DIR/floor stream 1048576 SECONDS 16", figure: asBytes(),
		value: regexp.MustCompile(`"bytes_per_second":([0-9.]+)`), unit: 1}
	pFabric = &tool{stack: "libfabric", program: "fi_pingpong", packages: "libfabric-bin",
		server: "fi_pingpong -p tcp -e msg -I COUNT -S 64 -B PORT",
		client: "fi_pingpong -p tcp -e msg -I COUNT -S 64 -P PORT 127.0.0.1", perSecond: 100e3, figure: asTime("mean"),
		value: regexp.MustCompile(`(?m)^64(?:\s+\S+){5}\s+([0-9.]+)\s+\S+\s*$`), unit: 1e3}
	pUCXLatency = ucx("tag_lat -s 64 -n COUNT", 100e3, asTime("p50"), `(?m)^Final:\s+\d+\s+([0-9.]+)`, 1e3)
	pUCXStream  = ucx("ucp_put_bw -s 1048576 -O 16 -n COUNT -w 100", 2000, asBytes(),
		`(?m)^Final:(?:\s+\S+){5}\s+([0-9.]+)`, 1<<20) // its MB are 2^20 bytes
	pUCXRate = ucx("ucp_put_bw -s 64 -O 128 -n COUNT", 400e3, asRate(), `(?m)^Final:(?:\s+\S+){7}\s+([0-9.]+)`, 1)
	pQperf   = qperf("-m 64 tcp_lat", asTime("mean"))
	pMPI     = &tool{stack: "openmpi", program: "mpicc", packages: "openmpi-bin libopenmpi-dev", source: "mpi",
		client: "mpirun --allow-run-as-root --mca btl tcp,self -n 2 DIR/mpi 64 SECONDS", figure: asTime("mean"),
		value: regexp.MustCompile(`latency = ([0-9.]+) (ns)`)}
)

// ucx is ucx_perftest over TCP.
func ucx(test string, perSecond float64, f reports.Figure, value string, unit float64) *tool {
	return &tool{stack: "ucx", program: "ucx_perftest", packages: "ucx-utils", server: "ucx_perftest -p PORT",
		client: "ucx_perftest 127.0.0.1 -p PORT -t " + test, perSecond: perSecond, figure: f,
		value: regexp.MustCompile(value), unit: unit, environ: []string{"UCX_TLS=tcp,self", "UCX_WARN_UNUSED_ENV_VARS=n"}}
}

func qperf(test string, f reports.Figure) *tool {
	return &tool{stack: "qperf", program: "qperf", packages: "qperf", server: "qperf -lp PORT",
		client: "qperf 127.0.0.1 -lp PORT -t SECONDS " + test, least: 1, figure: f,
		value: regexp.MustCompile(`(?m)^\s*(?:latency|bw)\s*=\s*([0-9.]+) (\S+)$`)}
}

func asTime(name string) reports.Figure {
	return reports.Figure{Name: name, Quantity: reports.QuantityTime, Better: reports.Less}
}

func asBytes() reports.Figure {
	return reports.Figure{Name: "bw", Quantity: reports.QuantityBytes, Better: reports.More}
}

func asRate() reports.Figure {
	return reports.Figure{Name: "rate", Quantity: reports.QuantityRate, Better: reports.More}
}

// turns runs a command and the tools beside it in turns, in an order that turns around from round to round.
func (n *runner) turns(ctx context.Context, r *Run, base string, first, last int, all *outcome) {
	if first == 0 {
		for _, t := range r.Beside {
			if err := t.prepare(ctx, n.dir); err != nil {
				all.absent[t.stack] = err
			}
		}
	}
	for round := first + 1; round <= last && ctx.Err() == nil; round++ {
		for i := range len(r.Beside) + 1 {
			if round%2 == 0 {
				i = len(r.Beside) - i
			}
			if i == 0 {
				o := n.start(ctx, fields(r.line(n.Options, 1)), fmt.Sprintf("%s-%d", base, round))
				if o.doc != nil {
					for i := range o.doc.Results {
						o.doc.Results[i].Repeat = 1
					}
				}
				all.add(o, round-1)
				continue
			}
			t := r.Beside[i-1]
			if _, no := all.absent[t.stack].(notHere); no {
				continue
			}
			f, err := t.measure(ctx, n.dir, n.Quick)
			if err != nil {
				all.absent[t.stack] = err // said where it has too few rounds
				continue
			}
			res := reports.Result{Transport: t.stack, Repeat: round, Label: reports.LabelSoft}
			res.Figures = []reports.Figure{f}
			all.doc.Results = append(all.doc.Results, res)
		}
	}
	if all.late = errors.Is(ctx.Err(), context.DeadlineExceeded); all.late {
		all.err = errLate
	}
}
