package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// trial tries the changes of a package by a schema where it can, and by themselves elsewhere. By
// itself a change takes a hundred times as long, so that the quick tests meet all of them first.
type trial struct {
	root, pkg string
	also      []string // packages whose tests are held against the changes, too
	covered   map[operator]bool
	schema    *schema // none where the package cannot have one
	binaries  []*binary
	alone     func() (tests, error) // by themselves: what is known of the tests
	broken    atomic.Pointer[error] // why alone knows nothing
}

// newTrial makes the schema and its tests. Without one, for which an error says why, changes are
// tried by themselves. No trial at all is for tests that fail without a change.
func newTrial(ctx context.Context, root, pkg string, also []string, all []operator, tmp string) (*trial, error) {
	t := &trial{root: root, pkg: pkg, also: also, covered: map[operator]bool{}}
	t.alone = sync.OnceValues(func() (tests, error) { return timeTests(ctx, root, append([]string{pkg}, also...)) })
	src, err := load(ctx, root, pkg)
	if err != nil {
		return t, err
	}
	without := map[string]bool{}
	for {
		s := newSchema(src, all, without)
		overlay, err := s.lay(root, src, tmp)
		if err != nil || len(s.number) == 0 {
			return t, err
		}
		b, err := build(ctx, root, pkg, overlay, filepath.Join(tmp, "0.test"))
		if err != nil {
			// Types of these lines have no name, or values no address.
			before := len(without)
			for _, m := range compileErrors.FindAllStringSubmatch(err.Error(), -1) {
				without[m[1]] = true
			}
			if len(without) == before {
				return t, fmt.Errorf("its schema does not build: %w", err)
			}
			continue
		}
		t.binaries = []*binary{b}
		for i, other := range also {
			b, err := build(ctx, root, other, overlay, filepath.Join(tmp, fmt.Sprint(i+1, ".test")))
			if err != nil {
				return t, err
			}
			t.binaries = append(t.binaries, b)
		}
		for _, b := range t.binaries {
			if err := b.measure(ctx, s.size); err != nil {
				return t, err
			}
		}
		if err := t.check(ctx); ctx.Err() != nil {
			return t, ctx.Err()
		} else if err != nil {
			return nil, err
		}
		t.schema = s
		return t, nil
	}
}

// check tells tests that the schema disturbs from those that fail as it is.
func (t *trial) check(ctx context.Context) error {
	for i, b := range t.binaries {
		pkg := append([]string{t.pkg}, t.also...)[i]
		if len(b.left) > 0 && !passes(ctx, t.root, []string{pkg, "-run", "^(" + strings.Join(b.left, "|") + ")$"}) {
			return fmt.Errorf("%s: tests fail without a change: %s", pkg, strings.Join(b.left, " "))
		}
	}
	return nil
}

// lay writes the schema's files and the list by which the go command finds them.
func (s *schema) lay(root string, src *source, tmp string) (overlay string, err error) {
	root, err = filepath.Abs(root)
	if err != nil {
		return "", err
	}
	replace := map[string]string{}
	put := func(name, text string) error {
		laid := filepath.Join(tmp, filepath.Base(name))
		replace[filepath.Join(root, name)] = laid
		return os.WriteFile(laid, []byte(text), 0o600)
	}
	for name, text := range s.texts {
		if err := put(name, text); err != nil {
			return "", err
		}
	}
	if err := put(filepath.Join(src.dir, "schema_of_mutate.go"), src.helper()); err != nil {
		return "", err
	}
	b, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	overlay = filepath.Join(tmp, "overlay.json")
	return overlay, os.WriteFile(overlay, b, 0o600)
}

// quickly is what became of a change as far as the schema's quick tests tell. It is unsure of what
// survives those, and of what the schema has not.
func (t *trial) quickly(ctx context.Context, o operator) (v verdict, sure bool) {
	if t.schema != nil && t.schema.dead[o] {
		return stale, true
	}
	n := 0
	if t.schema != nil {
		n = t.schema.number[o]
	}
	if n == 0 {
		return untested, !t.covered[o]
	}
	quick, slow := batches(t.binaries, n)
	for _, b := range quick {
		if v := b.try(ctx, n); v != survived {
			return v, true
		}
	}
	if len(quick)+len(slow) == 0 && !t.covered[o] {
		return untested, true
	}
	return survived, false
}

// byItself tries a change of which quickly is unsure.
func (t *trial) byItself(ctx context.Context, o operator) (v verdict, sure bool) {
	if t.schema != nil && t.schema.number[o] > 0 {
		quick, slow := batches(t.binaries, t.schema.number[o])
		if todo := append(quick, slow...); len(todo) > 0 {
			return t.confirm(ctx, o, todo), true
		}
	}
	return t.tryAlone(ctx, o), true // what the schema has not, or only tests reach that it disturbs
}

// tryAlone compiles the change and runs the quick tests, then all.
func (t *trial) tryAlone(ctx context.Context, o operator) verdict {
	k, err := t.alone()
	if err != nil {
		if ctx.Err() == nil {
			t.broken.Store(&err)
		}
		return notReached
	}
	return k.try(ctx, t.root, o)
}

// confirm compiles the change and runs all tests that reach it, and those that the schema
// disturbs. Slow tests run here alone: most of what comes so far survives them, too, and would
// meet them twice.
func (t *trial) confirm(ctx context.Context, o operator, todo []batch) verdict {
	text, err := o.changed(t.root)
	if err != nil {
		return stale
	}
	for i, b := range t.binaries {
		names := slices.Clone(b.left)
		took := time.Minute // that is for the compiler
		for _, d := range todo {
			if d.b == b {
				names, took = append(names, d.tests...), took+d.took
			}
		}
		if len(names) == 0 {
			continue
		}
		pkg := append([]string{t.pkg}, t.also...)[i]
		args := []string{pkg, "-run", "^(" + strings.Join(names, "|") + ")$"}
		if v := held(ctx, t.root, o.file, text, limit(took), args...); v != survived {
			return v
		}
	}
	return survived
}
