package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// explanation says why no test can notice a change that gremlins makes.
type explanation struct{ file, kind, line, why string }

// readExplanations reads lines of FILE | KIND | LINE OF CODE | WHY. KIND is gremlins' word for
// the change, or * for each one of that line.
func readExplanations(root, name string) (all []explanation, err error) {
	err = lines(name, func(_ int, line string) error {
		f := strings.Split(line, " | ")
		if len(f) != 4 || strings.TrimSpace(f[3]) == "" {
			return fmt.Errorf("%q: want FILE | KIND | LINE OF CODE | WHY", line)
		}
		for i := range f {
			f[i] = strings.TrimSpace(f[i])
		}
		e := explanation{f[0], f[1], f[2], f[3]}
		text, err := os.ReadFile(filepath.Join(root, e.file))
		if err != nil {
			return err
		}
		for l := range strings.Lines(string(text)) {
			if strings.TrimSpace(l) == e.line {
				all = append(all, e)
				return nil
			}
		}
		return fmt.Errorf("%s has no line %q any more", e.file, e.line)
	})
	return all, err
}

// finding is a line of gremlins' output about one change:
//
//	KILLED CONDITIONALS_NEGATION at rank.go:21:9
var finding = regexp.MustCompile(`(KILLED|LIVED|TIMED OUT|NOT COVERED|NOT VIABLE|SKIPPED) ([A-Z_]+) at (\S+):(\d+):(\d+)`)

// below excludes the packages in the directories below, which gremlins would change, too. Its
// paths begin at the package.
const below = "^[^/]+/"

// package_ has gremlins change one package, for its part of the time.
func (t *tally) package_(ctx context.Context, root string, gremlins []string, pkg string, left int) {
	deadline, _ := ctx.Deadline()
	part, cancel := context.WithTimeout(ctx, time.Until(deadline)/time.Duration(left))
	defer cancel()
	if ctx.Err() != nil {
		fmt.Fprintf(t.out, "%-9s %s\n", "not begun", pkg)
		t.n[notReached]++
		return
	}
	out, err := command(part, root, append(gremlins, "unleash", "--workers", "1", "--timeout-coefficient", "5", "--exclude-files", below, pkg)...)
	before := t.n
	covered := 0
	all := finding.FindAllStringSubmatch(out, -1)
	if part.Err() != nil && len(all) > 0 {
		all = all[:len(all)-1] // the change whose tests were ended, of which nothing is known
	}
	for _, m := range all {
		line, _ := strconv.Atoi(m[4]) // the expression has digits only
		file := filepath.Join(pkg, m[3])
		if _, err := os.Stat(filepath.Join(root, file)); err != nil {
			file = filepath.Clean(m[3]) // from the module's directory
		}
		switch m[1] {
		case "KILLED", "TIMED OUT":
			t.n[killed]++
			covered++
		case "LIVED":
			covered++
			t.lived(root, file, m[2], line, m[5])
		}
	}
	state := "all"
	switch {
	case part.Err() != nil:
		state = "cut short"
		t.n[notReached]++
	case err != nil || covered == 0:
		state = "FAILED"
		t.n[stale]++
		fmt.Fprintln(t.out, tail(out))
	}
	fmt.Fprintf(t.out, "%-9s %s: %d killed, %d survived, %d explained, of lines no test runs %d\n", state, pkg,
		t.n[killed]-before[killed], t.n[survived]-before[survived], t.n[explained]-before[explained], strings.Count(out, "NOT COVERED "))
}

// lived looks for an explanation.
func (t *tally) lived(root, file, kind string, line int, column string) {
	code := codeAt(filepath.Join(root, file), line)
	v := survived
	for _, e := range t.why {
		if filepath.Clean(e.file) == file && (e.kind == "*" || e.kind == kind) && e.line == code {
			v = explained
		}
	}
	t.count(v, fmt.Sprintf("%s:%d:%s %s | %s", file, line, column, kind, code))
}

// codeAt is a line of a file.
func codeAt(name string, line int) string {
	b, _ := os.ReadFile(name) // without it the change is shown without its line
	all := strings.Split(string(b), "\n")
	if line < 1 || line > len(all) {
		return ""
	}
	return strings.TrimSpace(all[line-1])
}

// tail is the end of an output.
func tail(s string) string { return s[max(0, len(s)-2000):] }
