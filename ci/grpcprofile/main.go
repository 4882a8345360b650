// Command grpcprofile turns the CPU profiles of ci/grpc-profile into one table: what
// the processors' time of a call is spent on, by the kind of work.
//
// Its arguments are directories with client.pprof and, of stacks with two processes,
// server.pprof; the result document of DIR is DIR.json.
//
// A sample counts for the innermost function of its stack that a rule knows, so that a
// copy is a copy whoever asked for it. What no rule knows is other.
//
// # Limitations
//
// It reads what "go tool pprof -traces" prints. A profile has samples of 10 ms, and
// covers all that the process did, start and idle watch included.
package main

import (
	"bufio"
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/rdmaperf/rdmaperf/ci/targets"
	"github.com/rdmaperf/rdmaperf/reports"
)

func main() { targets.Exit("grpc-profile", run) }

// column is one stack.
type column struct {
	name    string
	perCall float64 // processor time of both sides, ns
	calls   float64 // a second
	shares  map[string]float64
}

func run(args []string) error {
	flags := flag.NewFlagSet("grpcprofile", flag.ContinueOnError)
	if err := targets.Parse(flags, args, "DIR…", func() bool { return flags.NArg() > 0 }); err != nil {
		return err
	}
	var columns []column
	for _, dir := range flags.Args() {
		c, err := readColumn(dir)
		if err != nil {
			return err
		}
		columns = append(columns, c)
	}
	return write(os.Stdout, columns)
}

func readColumn(dir string) (c column, err error) {
	d, err := targets.ReadDocument(dir + ".json")
	if err != nil {
		return c, err
	}
	if d.Error != nil || len(d.Results) != 1 || d.Results[0].Operations == 0 || d.Results[0].CPU == nil {
		return c, fmt.Errorf("%s.json: no result of one point", dir)
	}
	r := &d.Results[0]
	c.name, c.calls = r.Transport, float64(r.Operations)*1e9/float64(r.DurationNs)
	cpu := r.CPU.ClientSeconds
	if r.Label != reports.LabelMem {
		cpu += r.CPU.ServerSeconds
	}
	c.perCall = cpu * 1e9 / float64(r.Operations)
	c.shares = map[string]float64{}
	total := 0.0
	for _, side := range []string{"client.pprof", "server.pprof"} {
		name := filepath.Join(dir, side)
		if _, err := os.Stat(name); errors.Is(err, fs.ErrNotExist) && side == "server.pprof" {
			continue // one process
		}
		out, err := exec.Command("go", "tool", "pprof", "-traces", name).Output()
		if err != nil {
			return c, fmt.Errorf("go tool pprof -traces %s: %w", name, err)
		}
		n, err := count(bytes.NewReader(out), c.shares)
		if err != nil {
			return c, fmt.Errorf("%s: %w", name, err)
		}
		total += n
	}
	if total == 0 {
		return c, fmt.Errorf("%s: no samples", dir)
	}
	for k := range c.shares {
		c.shares[k] /= total
	}
	return c, nil
}

// count adds the samples of a listing, in seconds, to the kinds of work. A block
// between rulers is one stack, innermost function first, with its time before that.
func count(r io.Reader, shares map[string]float64) (total float64, err error) {
	var stack []string
	value := 0.0
	flush := func() {
		if len(stack) > 0 {
			shares[kindOf(stack)] += value
			total += value
		}
		stack, value = nil, 0
	}
	s := bufio.NewScanner(r)
	began := false
	for s.Scan() {
		line := s.Text()
		if strings.HasPrefix(line, "-----------+") {
			flush()
			began = true
			continue
		}
		if !began {
			continue
		}
		f := strings.Fields(line)
		if len(stack) == 0 && len(f) > 1 {
			d, err := time.ParseDuration(f[0])
			if err != nil {
				return 0, fmt.Errorf("not a listing of traces: %q", line)
			}
			value, f = d.Seconds(), f[1:]
		}
		if len(f) > 0 {
			stack = append(stack, f[0])
		}
	}
	flush()
	return total, s.Err()
}

func write(w io.Writer, columns []column) error {
	b := bufio.NewWriter(w)
	row := func(name string, cell func(c column) string) {
		fmt.Fprintf(b, "%-38s", name)
		for _, c := range columns {
			fmt.Fprintf(b, " %20s", cell(c))
		}
		fmt.Fprintln(b)
	}
	row("", func(c column) string { return c.name })
	row("calls a second, under the profiler", func(c column) string { return fmt.Sprintf("%.0f", c.calls) })
	row("processor time of both sides a call", func(c column) string { return fmt.Sprintf("%.1f us", c.perCall/1e3) })
	for _, k := range kinds {
		row("  "+k.name, func(c column) string {
			return fmt.Sprintf("%.1f us %4.1f %%", c.shares[k.name]*c.perCall/1e3, 100*c.shares[k.name])
		})
	}
	return b.Flush()
}
