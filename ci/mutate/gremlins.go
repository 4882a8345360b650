package main

import (
	"context"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
)

// finding is a line of gremlins' output about one change that tests reach, or none does:
//
//	   RUNNABLE CONDITIONALS_NEGATION at rank.go:21:9
//	NOT COVERED CONDITIONALS_NEGATION at rank.go:23:9
var finding = regexp.MustCompile(`(RUNNABLE|NOT COVERED) ([A-Z_]+) at (\S+):(\d+):(\d+)`)

// below excludes the packages in the directories below, which gremlins would change, too. Its
// paths begin at the package.
const below = "^[^/]+/"

// search asks gremlins for the changes of a package; a-b, which has two names, is one. covered
// are those that the package's own tests reach, and those outside of functions: no line of a
// constant is run, but tests notice what it is.
//
// gremlins finds them without running tests (--dry-run). It would run them as well, but its
// limit for a test is a multiple of what the coverage took, which is nothing when go test has
// that in its cache: every change then counts as noticed by its time.
func (t *tally) search(ctx context.Context, root string, gremlins []string, pkg string) (all []operator, covered map[operator]bool, err error) {
	out, err := command(ctx, root, append(gremlins, "unleash", "--dry-run", "--exclude-files", below, pkg)...)
	found := finding.FindAllStringSubmatch(out, -1)
	if err != nil || len(found) == 0 {
		return nil, nil, fmt.Errorf("%w\n%s", err, tail(out))
	}
	covered = map[operator]bool{}
	done := map[operator]bool{}
	for _, m := range found {
		line, _ := strconv.Atoi(m[4]) // the expression has digits only
		column, _ := strconv.Atoi(m[5])
		o, err := find(root, pkg, m[3], m[2], line, column)
		if err != nil {
			t.count(stale, err.Error())
			continue
		}
		if o.old == "-" { // it has two names, in an order that changes
			o.kind = "INVERT_NEGATIVES"
		}
		same := o
		same.kind = ""
		if done[same] {
			continue
		}
		done[same] = true
		covered[o] = m[1] == "RUNNABLE" || o.outside(root)
		all = append(all, o)
	}
	return all, covered, nil
}

// lived looks for an explanation.
func (t *tally) lived(o operator) {
	v := survived
	for _, e := range t.why {
		if filepath.Clean(e.file) == o.file && (e.kind == "*" || slices.Contains(o.names(), e.kind)) && e.line == o.code {
			v = explained
		}
	}
	t.count(v, o.String())
}

// tail is the end of an output.
func tail(s string) string { return s[max(0, len(s)-2000):] }

func (o operator) String() string {
	return fmt.Sprintf("%s:%d:%d %s | %s", o.file, o.line, o.column, o.kind, o.code)
}
