package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// binary is the tests of a package, compiled with a schema laid over the tree.
type binary struct {
	path, dir string
	probes    []probe  // quickest first
	left      []string // tests that fail when the schema is laid in and nothing is changed
}

// probe is a test: how long it takes when nothing is changed, and which numbers it reaches.
type probe struct {
	name string
	took time.Duration
	seen []byte
}

// build compiles tests. What does not compile is an error with the compiler's words.
func build(ctx context.Context, root, pkg, overlay, path string) (*binary, error) {
	out, err := command(ctx, root, "go", "test", "-c", "-vet=off", "-gcflags=-e", "-overlay", overlay, "-o", path, pkg)
	if err != nil {
		return nil, fmt.Errorf("%w\n%s", err, out)
	}
	return &binary{path: path, dir: filepath.Join(root, pkg)}, nil
}

// measure runs each test by itself and then all together, with nothing changed.
func (b *binary) measure(ctx context.Context, size int) error {
	out, err := bounded(ctx, b.dir, nil, time.Minute, b.path, "-test.list", ".")
	if err != nil {
		return fmt.Errorf("its tests cannot be listed: %w\n%s", err, tail(out))
	}
	file := b.path + ".seen"
	for _, name := range strings.Fields(out) {
		if !regexp.MustCompile(`^(Test|Fuzz|Example)`).MatchString(name) {
			continue
		}
		p := probe{name: name}
		err := errors.New("not run")
		for range 2 { // a loaded machine may fail a good test once
			if err := os.WriteFile(file, make([]byte, size), 0o600); err != nil {
				return err
			}
			begin := time.Now()
			_, err = b.run(ctx, 0, file, testLimit, name)
			if p.took = time.Since(begin); err == nil {
				break
			}
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			b.left = append(b.left, name)
			continue
		}
		if p.seen, err = os.ReadFile(file); err != nil {
			return err
		}
		b.probes = append(b.probes, p)
	}
	slices.SortStableFunc(b.probes, func(x, y probe) int { return int(x.took - y.took) })
	return nil
}

// run runs tests with one change, or none for 0. What they write to a temporary directory goes
// with them.
func (b *binary) run(ctx context.Context, number int, seen string, limit time.Duration, tests ...string) (string, error) {
	tmp, err := os.MkdirTemp("", "mutate")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(tmp)
	env := []string{"TMPDIR=" + tmp, "MUTATE_NUMBER=" + strconv.Itoa(number), "MUTATE_SEEN=" + seen}
	return bounded(ctx, b.dir, env, limit+5*time.Second, b.path, "-test.paniconexit0", "-test.failfast", "-test.count=1", "-test.parallel="+atATime,
		"-test.timeout="+limit.String(), "-test.run=^("+strings.Join(tests, "|")+")$")
}

// batch is tests that are run together.
type batch struct {
	b     *binary
	tests []string
	took  time.Duration
}

// batches are the tests that reach a number, from the quickest on; slow ones come last.
func batches(all []*binary, number int) (quick, slow []batch) {
	bound := []time.Duration{100 * time.Millisecond, slowTest, time.Hour}
	for i, most := range bound {
		for _, b := range all {
			t := batch{b: b}
			for _, p := range b.probes {
				if p.seen[base(number)] > 0 && p.took < most && (i == 0 || p.took >= bound[i-1]) {
					t.tests, t.took = append(t.tests, p.name), t.took+p.took
				}
			}
			switch {
			case len(t.tests) == 0:
			case most <= slowTest:
				quick = append(quick, t)
			default:
				slow = append(slow, t)
			}
		}
	}
	return quick, slow
}

// base is the number of a place, of which the negation's is the next.
func base(number int) int { return (number-1)/2*2 + 1 }

// failed finds the tests that an output blames: that failed, or that ran when the time was over.
var failed = regexp.MustCompile(`(?m)^(?:--- FAIL: |\t)(\w+)(?:/\S*)? \(\d`)

// try holds tests against a change. Those that fail are run once more without it: if they fail
// then, too, they said nothing of it; and once more with it, which they have to notice again.
func (t batch) try(ctx context.Context, number int) verdict {
	most := max(5*time.Second, 10*t.took)
	out, err := t.b.run(ctx, number, "", most, t.tests...)
	switch {
	case ctx.Err() != nil:
		return notReached
	case err == nil:
		return survived
	}
	again := t.tests
	if m := failed.FindStringSubmatch(out); m != nil && slices.Contains(t.tests, m[1]) {
		again = m[1:2]
	}
	if _, err := t.b.run(ctx, 0, "", most, again...); err != nil {
		return notReached
	}
	switch _, err := t.b.run(ctx, number, "", most, again...); {
	case ctx.Err() != nil:
		return notReached
	case err == nil: // by chance
		return survived
	}
	return killed
}

// compileErrors finds FILE:LINE in what a compiler says.
var compileErrors = regexp.MustCompile(`(?m)([^\s/:]+\.go:\d+):\d+: `)
