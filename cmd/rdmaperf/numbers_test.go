package main

import (
	"bytes"
	"context"
	"math"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/catalogue"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/perftest"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload"
	"github.com/rdmaperf/rdmaperf/reports"
)

// numbers are flags whose text is a number or a list of numbers.
var numbers = strings.Fields("size inline_size qp-sweep rate-sweep bulk-size app-slice probe-size span eager " +
	"segment users contenders regions region-size total make max-memory max-window arena place-memory response " +
	"think-time machines deferred working-set register-threads")

// Of the numbers that are right by their kind: what is no mistake although it is extreme.
var (
	anyNumber = strings.Fields("seed") // every one is a seed
	// A limit may be as high as one likes, and pings go on until Ctrl-C.
	anyGreat = strings.Fields("max-memory max-window count")
)

// isNumber tells whether a flag wants a number.
func isNumber(f *pflag.Flag) bool {
	kind := f.Value.Type()
	return slices.Contains(numbers, f.Name) || slices.ContainsFunc([]string{"int", "uint", "count", "float"},
		func(k string) bool { return strings.HasPrefix(kind, k) && !strings.HasSuffix(kind, "Slice") })
}

// workloadOf is the workload that a flag belongs to, "" for none.
func workloadOf(flag string) string {
	all := catalogue.All()
	set := pflag.NewFlagSet("", pflag.ContinueOnError)
	for i, own := range workload.Register(all, set) {
		if slices.Contains(own, flag) && set.Lookup(flag) != nil {
			return all[i].Meta().Name
		}
	}
	return ""
}

// Whatever number a flag of whatever command gets: the command neither panics, nor takes more than 64 MB or 2 s before
// it reaches its peer or the end of its context. What is out of range is a usage error of one line that names the flag.
func TestEveryNumberOnTheCommandLineHasARange(t *testing.T) {
	t.Chdir(t.TempDir())
	port := foreignPeer(t)
	peer := "127.0.0.1:" + port
	// What a command needs beside the flag.
	needs := map[string]string{"run": "--transport iwarp --timeout 2s " + peer, "reproduce": "srdma", "doctor": peer,
		"mesh": "--rank 1 --size 2 --rendezvous " + peer, "rping": "-c -a 127.0.0.1 -p " + port,
		"compare": "--run true true", "serve": "--bind 127.0.0.1 --port 0", "lite daemon": "--socket s",
		"lite wordcount": "--transport mem", "lite pagerank": "--transport mem", "perftest": ""}
	tried, names := 0, map[string]bool{}
	each := func(path string, f *pflag.Flag, value string) {
		args := append(strings.Fields(path), "--"+f.Name, value)
		beside := strings.Fields(needs[path])
		if i := slices.Index(beside, "--"+f.Name); i >= 0 {
			beside = slices.Delete(beside, i, i+2)
		}
		if f.Shorthand != "" {
			if i := slices.Index(beside, "-"+f.Shorthand); i >= 0 {
				beside = slices.Delete(beside, i, i+2)
			}
		}
		if f.Name == "port" && path == "run" { // HOST has one
			beside = []string{"127.0.0.1"}
		}
		if w := workloadOf(f.Name); path == "run" && w != "" {
			args = append(args, "--workload", w)
		}
		out := value == "-1" || value == strconv.Itoa(math.MaxInt) && !slices.Contains(anyGreat, f.Name)
		out = out && isNumber(f) && !(slices.Contains(anyNumber, f.Name) && value != "-1")
		tried++
		refuses(t, false, out, f.Name, append(args, beside...))
	}
	ofEach(newRootCommand(), func(c *cobra.Command) {
		if !c.Runnable() || !c.IsAvailableCommand() || !c.HasParent() {
			return
		}
		_, path, _ := strings.Cut(c.CommandPath(), " ")
		c.InheritedFlags() // merges them into Flags
		c.Flags().VisitAll(func(f *pflag.Flag) {
			names[f.Name] = true
			for _, v := range []string{"-1", "0", strconv.Itoa(math.MaxInt), "1000000"} {
				if f.Value.Type() != "bool" {
					each(path, f, v)
				}
			}
		})
	})
	for _, n := range slices.Concat(numbers, anyNumber, anyGreat) {
		if !names[n] {
			t.Errorf("no command has --%s", n)
		}
	}
	for _, d := range perftest.Describe() {
		for _, v := range []string{"-1", strconv.Itoa(math.MaxInt), "1000000"} {
			if d.Arg != "" && d.Verdict != perftest.Refused && d.Long != "out_json_file" {
				tried++
				refuses(t, true, false, d.Long, []string{perftestName, "ib_write_bw", "--transport", "iwarp",
					"--" + d.Long, v, peer})
			}
		}
	}
	if tried < 800 {
		t.Errorf("%d command lines tried, want at least 800", tried)
	}
}

// refuses runs a command line, with a context that has ended. perftest: with one that goes on, since the peer ends
// it. out: its number is out of range.
func refuses(t *testing.T, live, out bool, flag string, args []string) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	if !live {
		cancel()
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	begin, code := time.Now(), -1
	var stdout, stderr bytes.Buffer
	func() {
		defer func() {
			if e := recover(); e != nil {
				t.Errorf("%q: panic: %v", args, e)
			}
		}()
		code = execute(ctx, args, &stdout, &stderr)
	}()
	runtime.ReadMemStats(&after)
	took, mib := time.Since(begin), (after.TotalAlloc-before.TotalAlloc)>>20
	if took > 2*time.Second || mib > 64 {
		t.Errorf("%q: %v, %d MiB", args, took, mib)
	}
	said := strings.TrimSuffix(stderr.String(), "\n")
	if out && (code != reports.ExitUsage || strings.Contains(said, "\n") || !strings.Contains(said, flag) &&
		!strings.Contains(said, "want ")) {
		t.Errorf("%q: exit %d, want 2 and one line that says what the flag wants\n%s", args, code, said)
	}
}
