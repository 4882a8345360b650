package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/run"
)

// complete asks as the shells' scripts do.
func complete(t *testing.T, args ...string) []string {
	t.Helper()
	r := rdmaperf(t, append([]string{"__complete"}, args...)...)
	lines := strings.Split(strings.TrimSpace(r.stdout), "\n")
	return lines[:len(lines)-1] // the last one is how to go on
}

// Cobra would keep a command whose values were completed.
func TestOnlyTheShellsRequestSetsUpCompletion(t *testing.T) {
	for _, c := range newRootCommand().Commands() {
		if _, set := c.GetFlagCompletionFunc("transport"); set {
			t.Errorf("%s completes values before it is asked to", c.Name())
		}
	}
}

func TestValuesAreCompleted(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"run", "--workload", ""}, "latency"},
		{[]string{"run", "--workload", "latency,th"}, "latency,throughput"},
		{[]string{"run", "--op", "write_"}, "write_imm"},
		{[]string{"run", "--format", ""}, "csv"},
		{[]string{"compare", "--format", "m"}, "markdown"},
		{[]string{"conform", "--explain", "ord/write-then"}, "ord/write-then-read"},
		{[]string{"run", "--polling", ""}, "event"},
		{[]string{"run", "--ycsb", "a,"}, "a,b"},
		{[]string{"perftest", "ib_send"}, "ib_send_lat"},
		{[]string{"perftest", "ib_write_bw", "--report_g"}, "--report_gbits"},
		{[]string{"help", "conf"}, "conform"},
	} {
		if got := complete(t, c.args...); !slices.Contains(got, c.want) {
			t.Errorf("%q offers %q, want %q among it", c.args, got, c.want)
		}
	}
	if got := complete(t, "run", "--workload", "latency,"); slices.Contains(got, "latency,latency") {
		t.Errorf("what stands in the list is offered again: %q", got)
	}
	// ShellCompDirectiveNoFileComp
	if r := rdmaperf(t, "__complete", "run", "--qp", ""); !strings.HasPrefix(r.stdout, ":4") {
		t.Errorf("files are offered for a number: %q", r.stdout)
	}
}

// What is offered is accepted, and the table names no flag that is gone.
func TestWhatIsOfferedIsAccepted(t *testing.T) {
	root := newRootCommand()
	known := map[string]bool{}
	for _, c := range root.Commands() {
		c.Flags().VisitAll(func(f *pflag.Flag) { known[f.Name] = true })
	}
	command, _, _ := root.Find([]string{"run"}) // a command of the table
	calls := []string{"ycsb", "rpc", "tensor"}
	for name, of := range vocabulary {
		if !known[name] {
			t.Errorf("no command has --%s", name)
		}
		if command.Flags().Lookup(name) == nil || name == "ib-dev" {
			continue
		}
		for _, word := range of(command) {
			var o run.Options
			cmd := runCommand(&o)
			args := []string{"--" + name, word}
			switch {
			case slices.Contains(calls, name):
				args = append(args, "--transport", "grpc(fused)+iwarp")
			case name == "mtu":
				args = append(args, "--transport", "verbs")
			case name == "arrivals":
				args = append(args, "--rate", "100")
			case name == "hol-arm":
				args = append(args, "--op", "write")
			case name == "op":
				args = append(args, "--workload", "latency")
			}
			if err := cmd.ParseFlags(args); err != nil {
				t.Errorf("%q: %v", args, err)
			} else if _, err := o.Plan(cmd); err != nil {
				t.Errorf("%q: %v", args, err)
			}
		}
	}
}
