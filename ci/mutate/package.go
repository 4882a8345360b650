package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// rounds is how often a change is tried whose tests fail without it, too.
const rounds = 3

// package_ holds the tests of a package against every change that gremlins finds in it, for its
// part of the time. name may have more packages behind a +, whose tests are held against the
// changes as well.
func (t *tally) package_(ctx context.Context, root string, gremlins []string, name string, left int, kept *store) {
	deadline, _ := ctx.Deadline()
	part, cancel := context.WithTimeout(ctx, time.Until(deadline)/time.Duration(left))
	defer cancel()
	begin, before := time.Now(), t.n
	packages := strings.Split(name, "+")
	pkg, also := packages[0], packages[1:]
	all, covered, err := t.search(part, root, gremlins, pkg)
	switch {
	case part.Err() != nil:
		fmt.Fprintf(t.out, "%-9s %s\n", "not begun", pkg)
		t.n[notReached]++
		return
	case err != nil:
		t.fail(pkg, err)
		return
	}
	if kept != nil {
		kept.also[filepath.Clean(pkg)] = also
	}
	dead, known, bare := 0, 0, 0
	note := func(o operator, v verdict) {
		switch v {
		case killed, notReached:
			t.n[v]++
		case stale:
			dead++
		case untested:
			bare++
			if t.untested {
				fmt.Fprintf(t.out, "%-9s %s\n", "untested", o)
			}
		case survived:
			t.lived(o)
		}
	}
	var todo []operator
	for _, o := range all {
		if v, ok := kept.verdict(o); ok && !(v == untested && covered[o]) {
			known++
			note(o, v)
		} else {
			todo = append(todo, o)
		}
	}
	if len(todo) > 0 {
		tmp, err := os.MkdirTemp("", "mutate")
		if err != nil {
			t.fail(pkg, err)
			return
		}
		defer os.RemoveAll(tmp)
		p, err := newTrial(part, root, pkg, also, todo, tmp)
		if p == nil {
			t.fail(pkg, err)
			return
		}
		p.covered = covered
		if part.Err() == nil {
			p.describe(t, err)
		}
		end := func(o operator, v verdict) {
			kept.keep(o, v)
			note(o, v)
		}
		unsure := t.all(part, todo, p.quickly, end)
		t.all(part, unsure, p.byItself, end)
		if err := p.broken.Load(); err != nil {
			t.fail(pkg, *err)
		}
	}
	state := "all"
	if part.Err() != nil {
		state = "cut short"
	}
	fmt.Fprintf(t.out, "%-9s %s: of %d changes %d killed, %d survived, %d explained, %d do not build, %d not reached; %d known from before; on lines that no test runs %d; %v\n",
		state, pkg, len(all)-bare, t.n[killed]-before[killed], t.n[survived]-before[survived], t.n[explained]-before[explained], dead,
		t.n[notReached]-before[notReached], known, bare, time.Since(begin).Round(time.Second))
}

// all tries changes, and those whose tests fail without them in a few rounds. It returns those of
// which try is unsure, and calls end for the others.
func (t *tally) all(ctx context.Context, todo []operator, try func(context.Context, operator) (verdict, bool), end func(operator, verdict)) (unsure []operator) {
	for round := 1; round <= rounds && len(todo) > 0; round++ {
		var mu sync.Mutex
		var again []operator
		each(t.jobs, todo, func(o operator) {
			v, sure := try(ctx, o)
			mu.Lock()
			defer mu.Unlock()
			switch {
			case !sure:
				unsure = append(unsure, o)
			case v == notReached && ctx.Err() == nil && round < rounds:
				again = append(again, o)
			default:
				end(o, v)
			}
		})
		todo = again
	}
	return unsure
}

// fail says that nothing is known of a package.
func (t *tally) fail(pkg string, err error) {
	fmt.Fprintf(t.out, "%-9s %s: %v\n", "FAILED", pkg, err)
	t.n[stale]++
}

// describe says what a schema has not.
func (p *trial) describe(t *tally, err error) {
	if err != nil {
		fmt.Fprintf(t.out, "%-9s %s: each change by itself: %v\n", "slow", p.pkg, err)
	}
	if p.schema == nil {
		return
	}
	for i, b := range p.binaries {
		if len(b.left) > 0 {
			fmt.Fprintf(t.out, "%-9s %s: fail where changes are only asleep: %s\n", "left out", append([]string{p.pkg}, p.also...)[i], strings.Join(b.left, " "))
		}
	}
}

// each calls f for all, so many at a time.
func each(jobs int, all []operator, f func(operator)) {
	var wg sync.WaitGroup
	next := make(chan operator)
	for range jobs {
		wg.Go(func() {
			for o := range next {
				f(o)
			}
		})
	}
	for _, o := range all {
		next <- o
	}
	close(next)
	wg.Wait()
}
