package main

import (
	"context"
	"fmt"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// finding is a line of gremlins' output about one change that tests reach:
//
//	RUNNABLE CONDITIONALS_NEGATION at rank.go:21:9
var finding = regexp.MustCompile(`RUNNABLE ([A-Z_]+) at (\S+):(\d+):(\d+)`)

// below excludes the packages in the directories below, which gremlins would change, too. Its
// paths begin at the package.
const below = "^[^/]+/"

// package_ holds the tests of one package against every change that gremlins finds in it, for
// its part of the time.
//
// gremlins finds them, and what tests reach, without running any (--dry-run). It would run them
// as well, but its limit for a test is a multiple of what the coverage took, which is nothing
// when go test has that in its cache: every change then counts as noticed by its time.
func (t *tally) package_(ctx context.Context, root string, gremlins []string, pkg string, left int, kept *store) {
	deadline, _ := ctx.Deadline()
	part, cancel := context.WithTimeout(ctx, time.Until(deadline)/time.Duration(left))
	defer cancel()
	before, tried, known, dead := t.n, 0, 0, 0
	out, err := command(part, root, append(gremlins, "unleash", "--dry-run", "--exclude-files", below, pkg)...)
	all := finding.FindAllStringSubmatch(out, -1)
	base := tests{}
	if err == nil && len(all) > 0 {
		base, err = timeTests(part, root, pkg)
	}
	switch {
	case part.Err() != nil:
		fmt.Fprintf(t.out, "%-9s %s\n", "not begun", pkg)
		t.n[notReached]++
		return
	case err != nil || len(all) == 0:
		fmt.Fprintf(t.out, "%-9s %s: %v\n%s\n", "FAILED", pkg, err, tail(out))
		t.n[stale]++
		return
	}
	done := map[operator]bool{}
	for _, m := range all {
		line, _ := strconv.Atoi(m[3]) // the expression has digits only
		column, _ := strconv.Atoi(m[4])
		o, err := find(root, pkg, m[2], m[1], line, column)
		if err != nil {
			t.count(stale, err.Error())
			continue
		}
		same := o
		same.kind = ""
		if done[same] { // a-b is one change by two names
			continue
		}
		done[same] = true
		v, ok := kept.verdict(o)
		if ok {
			known++
		} else {
			v = base.try(part, root, pkg, o)
			kept.keep(o, v)
		}
		tried++
		switch v {
		case killed, notReached:
			t.n[v]++
		case stale:
			dead++
		case survived:
			t.lived(o)
		}
	}
	state := "all"
	if part.Err() != nil {
		state = "cut short"
	}
	fmt.Fprintf(t.out, "%-9s %s: of %d changes %d killed, %d survived, %d explained, %d do not build, %d not reached; %d known from before; on lines that no test runs %d\n",
		state, pkg, tried, t.n[killed]-before[killed], t.n[survived]-before[survived], t.n[explained]-before[explained], dead,
		t.n[notReached]-before[notReached], known, strings.Count(out, "NOT COVERED "))
}

// lived looks for an explanation.
func (t *tally) lived(o operator) {
	v := survived
	for _, e := range t.why {
		if filepath.Clean(e.file) == o.file && (e.kind == "*" || e.kind == o.kind) && e.line == o.code {
			v = explained
		}
	}
	t.count(v, fmt.Sprintf("%s:%d:%d %s | %s", o.file, o.line, o.column, o.kind, o.code))
}

// tail is the end of an output.
func tail(s string) string { return s[max(0, len(s)-2000):] }
