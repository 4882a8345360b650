package main

import (
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// Every application finds on local nodes what a single machine does, and says so.
func TestLiteApplicationsAgreeWithASingleMachine(t *testing.T) {
	edges := filepath.Join(t.TempDir(), "edges")
	if err := os.WriteFile(edges, []byte("a b\nb c\nc a\na c\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ args, want string }{
		{"log --records 50 --size 40", "150 records"},
		{"wordcount root.go main.go", "files taken by each node"},
		{"pagerank --iterations 5 --edges " + edges, "3 vertices, 4 edges"},
		{"dsm --pages 4 --accesses 100 --writes 0.5", "pages fetched"},
	} {
		r := rdmaperf(t, append([]string{"lite", "--nodes", "3", "--transport", "mem"}, strings.Fields(c.args)...)...)
		if r.code != 0 || !strings.Contains(r.stdout, c.want) ||
			!strings.Contains(r.stdout, "the same as on a single machine") ||
			!strings.Contains(r.stdout, "of them use LITE") {
			t.Errorf("lite %s: exit code %d\n%s%s", c.args, r.code, r.stdout, r.stderr)
		}
	}
}

func TestLiteRefusesWhatCannotBe(t *testing.T) {
	for _, args := range []string{"log --nodes 0", "log --records 0", "wordcount nonesuch.txt",
		"pagerank --edges lite.go", "pagerank --iterations 0", "dsm --writes 2", "log --transport tcp",
		"wordcount /dev/zero", "wordcount --nodes -1 lite.go"} {
		if r := rdmaperf(t, append([]string{"lite"}, strings.Fields(args)...)...); r.code != 2 ||
			strings.Count(r.stderr, "\n") != 1 {
			t.Errorf("lite %s: exit code %d, want 2\n%s", args, r.code, r.stderr)
		}
	}
}

// Every number of an application has a range, and what is outside it is refused where it is read.
func TestLiteNumbersHaveRanges(t *testing.T) {
	for _, flag := range []string{"log --records", "log --size", "wordcount --top", "pagerank --top",
		"pagerank --iterations", "dsm --pages", "dsm --accesses", "log --nodes", "daemon --places", "daemon --links"} {
		for _, v := range []string{"-1", strconv.Itoa(math.MaxInt), "99999999999999999999", "x"} {
			r := rdmaperf(t, append([]string{"lite"}, append(strings.Fields(flag), v)...)...)
			if r.code != 2 || !strings.Contains(r.stderr, "want ") {
				t.Errorf("lite %s %s: exit code %d, %s", flag, v, r.code, r.stderr)
			}
		}
	}
}

// A list that is given and empty is no default.
func TestEmptyListsAreRefused(t *testing.T) {
	for _, flag := range []string{"--size", "--op", "--workload"} {
		if r := rdmaperf(t, "run", flag, ""); r.code != 2 || !strings.Contains(r.stderr, "empty") {
			t.Errorf("%s '': exit code %d, %s", flag, r.code, r.stderr)
		}
	}
}
