package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
)

// tests is what is known of packages' tests when nothing is changed.
type tests struct {
	of    []string
	slow  []string      // names of those that take longer than slowTest
	quick time.Duration // how long all but the slow take, build included
	all   time.Duration
}

// slowTest is from when on a test runs only for what the others do not notice.
const slowTest = time.Second

// packageLimit bounds all tests of packages: on a busy machine they take much longer than on a
// quiet one.
const packageLimit = 10 * time.Minute

// timeTests runs all tests of packages once, and those that are not slow once more.
func timeTests(ctx context.Context, root string, packages []string) (k tests, err error) {
	k.of = packages
	out, err := fine(ctx, root, &k.all, append([]string{"-json"}, k.of...)...)
	if err != nil {
		return k, fmt.Errorf("its tests fail without a change: %w", err)
	}
	for s := bufio.NewScanner(strings.NewReader(out)); s.Scan(); {
		var e struct {
			Action, Test string
			Elapsed      float64
		}
		// What the go command prints besides is no JSON.
		if json.Unmarshal(s.Bytes(), &e) == nil && e.Action == "pass" && e.Test != "" && !strings.Contains(e.Test, "/") && e.Elapsed > slowTest.Seconds() {
			k.slow = append(k.slow, regexp.QuoteMeta(e.Test))
		}
	}
	if _, err = fine(ctx, root, &k.quick, k.quickArgs()...); err != nil {
		return k, fmt.Errorf("its quick tests fail without a change: %w", err)
	}
	return k, nil
}

// fine runs tests that should pass, and says how long they took. A loaded machine may fail a good
// one once; which it was is told.
func fine(ctx context.Context, root string, took *time.Duration, args ...string) (out string, err error) {
	for range 2 {
		begin := time.Now()
		out, err = command(ctx, root, goTest(packageLimit, args...)...)
		if *took = time.Since(begin); err == nil || ctx.Err() != nil {
			return out, err
		}
	}
	var names []string
	for _, m := range failedWithout.FindAllStringSubmatch(out, -1) {
		names = append(names, m[1])
	}
	return out, fmt.Errorf("%w: %s", err, strings.Join(names, " "))
}

// failedWithout finds the tests that failed, in what go test prints and in what it prints as JSON.
var failedWithout = regexp.MustCompile(`--- FAIL: (\w+) `)

func (k tests) quickArgs() []string {
	if len(k.slow) == 0 {
		return k.of
	}
	return append([]string{"-skip", "^(" + strings.Join(k.slow, "|") + ")$"}, k.of...)
}

// limit bounds tests that take d when nothing is changed: by that a change that lets them hang
// is noticed. It is far above, as the machine may be busy; where it was so when d was taken, that
// is no reason to wait for hours.
func limit(d time.Duration) time.Duration { return min(max(30*time.Second, 10*d), testLimit) }

// try holds the quick tests against a change, and all of them if those notice nothing. Code
// that does not build is stale.
func (k tests) try(ctx context.Context, root string, o operator) verdict {
	text, err := o.changed(root)
	if err != nil {
		return stale
	}
	v := held(ctx, root, o.file, text, limit(k.quick), k.quickArgs()...)
	if v == survived && len(k.slow) > 0 {
		v = held(ctx, root, o.file, text, limit(k.all), k.of...)
	}
	return v
}

// held is overlaid, but where the test that fails also does without the change, just then, it
// says nothing; and it has to fail with the change once more, as a loaded machine may fail a good
// one once.
func held(ctx context.Context, root, file, text string, limit time.Duration, test ...string) verdict {
	v, out := overlaid(ctx, root, file, text, limit, test...)
	if v != killed {
		return v
	}
	if m := failed.FindStringSubmatch(out); m != nil {
		test = append(slices.Clone(test), "-run", "^"+m[1]+"$")
	}
	if !passes(ctx, root, test) {
		return notReached
	}
	v, _ = overlaid(ctx, root, file, text, limit, test...)
	return v
}
