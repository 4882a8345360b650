package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/rdmaperf/rdmaperf/transports/conform"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

var update = flag.Bool("update", false, "rewrite the generated parts of README.md")

const readme = "../../README.md"

// capabilityTable is what the providers themselves declare.
func capabilityTable(t *testing.T) string {
	t.Helper()
	names := []string{"iwarp", "mem"}
	var caps []rdma.Caps
	for _, name := range names {
		h, err := openHarness(name)
		if err != nil {
			t.Fatal(err)
		}
		a, _, _, err := h.Pair(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		caps = append(caps, a.Caps())
		if err := h.Close(); err != nil {
			t.Fatal(err)
		}
	}
	var b strings.Builder
	row := func(what string, cell func(c *rdma.Caps) string) {
		fmt.Fprintf(&b, "| %s |", what)
		for i := range caps {
			fmt.Fprintf(&b, " %s |", cell(&caps[i]))
		}
		b.WriteByte('\n')
	}
	fmt.Fprintf(&b, "| capability | %s |\n|---|%s\n", strings.Join(names, " | "), strings.Repeat("---|", len(names)))
	yes := func(ok bool) string {
		if ok {
			return "yes"
		}
		return "–"
	}
	for o := rdma.Opcode(0); int(o) < rdma.NumOpcodes; o++ {
		row(o.String(), func(c *rdma.Caps) string { return yes(c.Ops.Has(o)) })
	}
	for f := rdma.Features(1); f.String() != ""; f <<= 1 {
		row(strings.ReplaceAll(f.String(), "_", " "), func(c *rdma.Caps) string { return yes(c.Features.Has(f)) })
	}
	row("a completion means", func(c *rdma.Caps) string { return c.Completion.String() })
	row("longest message", func(c *rdma.Caps) string { return fmt.Sprint(c.MaxMsg) })
	row("queue depth", func(c *rdma.Caps) string { return fmt.Sprint(c.MaxQPWR) })
	row("reads outstanding (IRD, ORD)", func(c *rdma.Caps) string { return fmt.Sprint(c.MaxRDAtom) })
	row("scatter/gather elements, of a read", func(c *rdma.Caps) string { return fmt.Sprintf("%d, %d", c.MaxSGE, c.MaxReadSGE) })
	row("inline bytes", func(c *rdma.Caps) string { return fmt.Sprint(c.MaxInline) })
	row("private data bytes", func(c *rdma.Caps) string { return fmt.Sprint(c.MaxPrivate) })
	return b.String()
}

// TestReadmeTellsWhatIsTrue keeps the generated table and the counts of the README.
func TestReadmeTellsWhatIsTrue(t *testing.T) {
	text, err := os.ReadFile(readme)
	if err != nil {
		t.Fatal(err)
	}
	part := regexp.MustCompile(`(?s)(<!-- capabilities: [^\n]*-->\n).*?(<!-- capabilities end -->)`)
	cases := regexp.MustCompile(`runs \d+ cases`)
	if !part.Match(text) || !cases.Match(text) {
		t.Fatal("the README lacks the markers of the capability table or the number of cases")
	}
	want := part.ReplaceAllString(string(text), "${1}"+strings.ReplaceAll(capabilityTable(t), "$", "$$")+"${2}")
	want = cases.ReplaceAllString(want, fmt.Sprintf("runs %d cases", len(conform.Catalogue())))
	if want == string(text) {
		return
	}
	if !*update {
		t.Fatal("README.md is stale: run go test ./cmd/rdmaperf -run Readme -update")
	}
	if err := os.WriteFile(readme, []byte(want), 0o644); err != nil {
		t.Fatal(err)
	}
}

// shellWords splits a line of the README as a shell would: quotes, and an end at a
// comment, a redirection or the next command.
func shellWords(line string) []string {
	var words []string
	for _, w := range regexp.MustCompile(`'[^']*'|"[^"]*"|\S+`).FindAllString(line, -1) {
		if strings.HasPrefix(w, "#") || strings.HasPrefix(w, ">") || w == "|" || w == "&&" {
			break
		}
		words = append(words, strings.Trim(w, `'"`))
	}
	return words
}

// Every command line that the README shows is one that rdmaperf understands.
func TestReadmeCommandsAreUnderstood(t *testing.T) {
	text, err := os.ReadFile(readme)
	if err != nil {
		t.Fatal(err)
	}
	lines := regexp.MustCompile(`(?m)^(?:    |- run: |  run: )((?:go run \./cmd/)?rdmaperf .*)$`).FindAllStringSubmatch(string(text), -1)
	if len(lines) < 15 {
		t.Fatalf("%d command lines found, want more", len(lines))
	}
	for _, l := range lines {
		words := shellWords(strings.TrimPrefix(l[1], "go run ./cmd/"))
		root := newRootCommand()
		cmd, args, err := root.Find(words[1:])
		if err == nil {
			err = cmd.ParseFlags(args)
		}
		if err == nil && cmd == root {
			err = errors.New("no such command")
		}
		if err == nil {
			err = cmd.ValidateArgs(cmd.Flags().Args())
		}
		if err != nil {
			t.Errorf("%s: %v", l[1], err)
		}
	}
}

// The ledger that the README shows is one that conform accepts.
func TestReadmeLedgerIsAccepted(t *testing.T) {
	text, err := os.ReadFile(readme)
	if err != nil {
		t.Fatal(err)
	}
	block := regexp.MustCompile("(?s)```json\n(.*?)```").FindSubmatch(text)
	if block == nil {
		t.Fatal("no ledger in the README")
	}
	l, err := conform.ReadLedger(bytes.NewReader(block[1]))
	if err != nil {
		t.Fatal(err)
	}
	if stale := l.Stale(conform.Catalogue()); len(l.Entries) == 0 || len(stale) > 0 {
		t.Errorf("%d entries, stale %+v", len(l.Entries), stale)
	}
}
