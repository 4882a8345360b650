package run

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/catalogue"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/cli"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/impair"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/values"
	"github.com/rdmaperf/rdmaperf/reports"
)

type badPath struct {
	name      string // as given, such as loss=1%
	cfg       impair.Config
	stop, cut time.Duration // how long the server stands still, and the path lets nothing through, again and again
}

// badPaths reads --impair: a path for each combination of the values of its keys.
func badPaths(given []string) ([]badPath, error) {
	paths := []badPath{{cfg: impair.Config{Seed: 1}}}
	for _, g := range given {
		key, list, ok := strings.Cut(g, "=")
		if !ok {
			return nil, values.Wrong("impair",
				"%q: want loss=P, dup=P, reorder=P, delay=TIME, stop=TIME, cut=TIME or seed=N", g)
		}
		var all []badPath
		for _, p := range paths {
			for v := range strings.SplitSeq(list, ",") {
				q := p
				if err := setPath(&q, key, v); err != nil {
					return nil, err
				}
				if key != "seed" {
					q.name = strings.TrimPrefix(p.name+","+key+"="+v, ",")
				}
				all = append(all, q)
			}
		}
		paths = all
	}
	return paths, nil
}

func setPath(p *badPath, key, v string) (err error) {
	switch key {
	case "loss":
		p.cfg.Loss, err = probability(v)
	case "dup":
		p.cfg.Duplicate, err = probability(v)
	case "reorder":
		p.cfg.Reorder, err = probability(v)
	case "delay":
		p.cfg.Delay, err = within(v, time.Minute)
	case "stop":
		p.stop, err = within(v, longestPulse)
	case "cut":
		p.cut, err = within(v, longestPulse)
	case "seed":
		p.cfg.Seed, err = strconv.ParseUint(v, 10, 64)
	default:
		err = errors.New("unknown: want loss, dup, reorder, delay, stop, cut or seed")
	}
	if err != nil {
		return values.Wrong("impair", "%s=%s: %v", key, v, err)
	}
	return nil
}

// longestPulse is shorter than what ends connections (stream.UserTimeout).
const longestPulse = 5 * time.Second

func within(v string, most time.Duration) (time.Duration, error) {
	d, err := time.ParseDuration(v)
	if err == nil && (d < 0 || d > most) {
		err = fmt.Errorf("want 0 to %v", most)
	}
	return d, err
}

// pulse harms and mends in turns, and mends at the end. It returns how often it did when ctx has ended.
func pulse(ctx context.Context, lasts time.Duration, harm func(bool)) (n int) {
	if lasts == 0 {
		return 0
	}
	// As long between two as one lasts, and half a second for what gets under way.
	for apart := lasts + 500*time.Millisecond; ; n++ {
		for _, on := range []bool{true, false} {
			wait := lasts
			if on {
				wait = apart
			}
			select {
			case <-time.After(wait):
			case <-ctx.Done():
				if !on {
					harm(false)
				}
				return n
			}
			harm(on)
		}
	}
}

func probability(v string) (float64, error) {
	num, percent := strings.CutSuffix(v, "%")
	p, err := strconv.ParseFloat(num, 64)
	if percent {
		p /= 100
	}
	if err != nil || !(p >= 0 && p < 1) {
		return 0, errors.New("want a probability such as 0.01 or 1%, below 1")
	}
	return p, nil
}

func (o *Options) runImpaired(cmd *cobra.Command) error {
	paths, err := badPaths(o.impair)
	if err != nil {
		return cli.Usage("read command line", err, "--impair loss=0,0.1%,1%")
	}
	if o.host != "" || o.scenario != "" {
		return cli.Usage("read --impair", errors.New("the path is between two ends that it makes"),
			"neither a HOST nor --scenario")
	}
	for _, word := range []string{"link=", "stack=raw", "stack=sequential", "mem", "verbs", "grpc(unix)",
		"grpc(bufconn)"} {
		if strings.Contains(o.transports, word) {
			return cli.Usage("read --impair", fmt.Errorf("%q does not go through the kernel's IP", word),
				"iwarp and tcp on kernel sockets; a stack in user space has loss=P of its own")
		}
	}
	if os.Geteuid() != 0 {
		return &reports.ExitError{Code: reports.ExitNotRun, Operation: "make a bad path",
			Err: errors.New("network namespaces and TUN devices need root"), Hint: "sudo"}
	}
	if err := o.to.open(time.Now()); err != nil {
		return err
	}
	stderr := cmd.ErrOrStderr()
	doc := &reports.Document{Started: time.Now().UTC(), Command: os.Args, Environment: reports.Collect()}
	for _, p := range paths {
		if err = o.overPath(cmd.Context(), cmd.Flags(), p, doc, stderr); err != nil {
			err = fmt.Errorf("path %s: %w", p.name, err)
			break
		}
	}
	err = o.finish(cmd.OutOrStdout(), doc, err)
	return cmp.Or(err, o.failIf.check(stderr, doc))
}

func (o *Options) overPath(ctx context.Context, flags *pflag.FlagSet, p badPath, doc *reports.Document,
	stderr io.Writer) (err error) {
	path, err := impair.Open(p.cfg)
	if err != nil {
		return &reports.ExitError{Code: reports.ExitNotRun, Operation: "make a bad path", Err: err}
	}
	defer func() { err = errors.Join(err, path.Close()) }()
	hold := make(chan struct{})
	defer close(hold)
	server, err := startChildAt(ctx, stderr, impair.Addresses[0],
		func(start func() error) error { return path.In(0, hold, start) })
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, server.stop()) }()
	dir, err := os.MkdirTemp("", "rdmaperf")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "result.json")
	client, err := clientOver(server.addr, file, flags, stderr)
	if err != nil {
		return err
	}
	if err := path.In(1, hold, client.Start); err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { client.Process.Signal(os.Interrupt) })
	defer stop()
	stops, cuts := 0, 0
	pulses, still := context.WithCancel(ctx)
	var group sync.WaitGroup
	group.Go(func() { stops = pulse(pulses, p.stop, server.freeze) })
	group.Go(func() {
		cuts = pulse(pulses, p.cut, func(on bool) {
			c := p.cfg
			if on {
				c.Loss = 1
			}
			path.Set(c)
		})
	})
	waited := client.Wait()
	still()
	group.Wait()
	if f, e := os.Open(file); e == nil {
		defer f.Close()
		one, e := reports.ReadDocument(f, catalogue.Results())
		if e != nil {
			return e
		}
		for i := range one.Results {
			one.Results[i].Impairment = p.name
			one.Results[i].Disturbance.LossMeant()
		}
		doc.Results = append(doc.Results, one.Results...)
		doc.AddPublished(one.Published)
	}
	if n := path.Counts(); !o.quiet {
		fmt.Fprintf(stderr, "%s: %d packets, %d lost, %d doubled, %d overtaken", p.name, n.Packets, n.Lost,
			n.Duplicated, n.Reordered)
		if stops > 0 {
			fmt.Fprintf(stderr, ", server stopped %d times", stops)
		}
		if cuts > 0 {
			fmt.Fprintf(stderr, ", path cut %d times", cuts)
		}
		fmt.Fprintln(stderr)
	}
	if exit, ok := errors.AsType[*exec.ExitError](waited); ok {
		return &reports.ExitError{Code: exit.ExitCode(), Operation: "run over " + p.name,
			Err: errors.New("it said why above")}
	}
	return waited
}

func clientOver(addr, file string, flags *pflag.FlagSet, stderr io.Writer) (*exec.Cmd, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	host, port, _ := strings.Cut(addr, ":")
	// lost packets would look like a disturbance
	args := []string{"run", host, "--port=" + port, "--json=" + file, "--quiet"}
	flags.Visit(func(f *pflag.Flag) {
		if slices.Contains(outsideScenario, f.Name) || f.Name == "port" {
			return
		}
		v := f.Value.String()
		if s, ok := f.Value.(pflag.SliceValue); ok {
			v = strings.Join(s.GetSlice(), ",")
		}
		args = append(args, "--"+f.Name+"="+v)
	})
	c := exec.Command(self, args...)
	c.Stdout, c.Stderr = io.Discard, stderr
	c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
	return c, nil
}
