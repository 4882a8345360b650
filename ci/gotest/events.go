package main

import (
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"strings"
)

// event is a line of `go tool test2json`.
type event struct {
	Action, Test, Output string
	Elapsed              float64 // seconds, of a test that ended
}

// verdict is how a test ended.
type verdict string

const (
	passed  verdict = "pass"
	failed  verdict = "fail"
	skipped verdict = "skip"
	unended verdict = "unended" // the binary ended before the test did
)

// result is one test, or with an empty name what befell its package as a whole.
type result struct {
	Package string
	Test    string
	Verdict verdict
	Reason  string  `json:",omitempty"` // of a skip
	Parent  bool    `json:",omitempty"` // has subtests, which are counted instead
	Seconds float64 `json:",omitempty"` // how long it took
	Kept    bool    `json:",omitempty"` // it did not run: nothing changed since it passed (kept.go)
	output  string
}

// where is how package testing begins the line of a log: file and line.
var where = regexp.MustCompile(`(?m)^\s*[\w.-]+\.go:\d+: `)

// reason is what a skipped test said at last.
func reason(output string) string {
	at := where.FindAllStringIndex(output, -1)
	if at == nil {
		return "it says no reason"
	}
	text, _, _ := strings.Cut(output[at[len(at)-1][1]:], "--- SKIP")
	return strings.Join(strings.Fields(text), " ")
}

// read takes the events of one package: its tests in the order in which they began.
func read(pkg string, from io.Reader) ([]*result, error) {
	var all []*result
	tests := map[string]*result{}
	of := func(name string) *result {
		r := tests[name]
		if r == nil {
			r = &result{Package: pkg, Test: name, Verdict: unended}
			tests[name], all = r, append(all, r)
			if i := strings.LastIndexByte(name, '/'); i > 0 {
				for ; i > 0; i = strings.LastIndexByte(name[:i], '/') {
					if p := tests[name[:i]]; p != nil {
						p.Parent = true
						break
					}
				}
			}
		}
		return r
	}
	dec := json.NewDecoder(from)
	for {
		var e event
		if err := dec.Decode(&e); err == io.EOF {
			return all, nil
		} else if err != nil {
			return all, fmt.Errorf("read events of %s: %w", pkg, err)
		}
		switch e.Action {
		case "start", "run", "pause", "cont", "bench", "attr", "artifacts":
			if e.Test != "" {
				of(e.Test)
			}
		case "output":
			r := of(e.Test)
			r.output += e.Output
		case "pass", "fail", "skip":
			r := of(e.Test)
			r.Verdict, r.Seconds = verdict(e.Action), e.Elapsed
			if r.Verdict == skipped {
				r.Reason = reason(r.output)
			}
		}
	}
}

// count adds up: subtests instead of their parents, but for a parent that failed by
// itself, and a package that failed without any test.
func count(all []*result) (pass, fail, skip int, bad []*result) {
	below := map[string]bool{} // tests of which a subtest failed
	for _, r := range all {
		if r.bad() && r.Test != "" {
			below[r.Package] = true
			for name := r.Test; ; {
				i := strings.LastIndexByte(name, '/')
				if i < 0 {
					break
				}
				name = name[:i]
				below[r.Package+" "+name] = true
			}
		}
	}
	for _, r := range all {
		switch {
		case r.Test == "" && r.bad() && !below[r.Package]:
			fail++
			bad = append(bad, r)
		case r.Test == "":
		case r.bad() && !(r.Parent && below[r.Package+" "+r.Test]):
			fail++
			bad = append(bad, r)
		case r.Parent:
		case r.Verdict == passed:
			pass++
		case r.Verdict == skipped:
			skip++
		}
	}
	return pass, fail, skip, bad
}

func (r *result) bad() bool { return r.Verdict == failed || r.Verdict == unended }
