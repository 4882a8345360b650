package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// change is one of the list: old becomes new in a file, and a test has to notice.
type change struct {
	name, file, old, new string
	test                 []string // arguments of go test
}

// readList reads changes: a name in square brackets, and behind it a line each of
//
//	file PATH     from the module's directory
//	old TEXT      occurs once in the file; \n is a line's end, \t a tab
//	new TEXT      in its place; may be empty
//	test ARGS     of go test: packages, -run
func readList(name string) (all []change, err error) {
	err = lines(name, func(_ int, line string) error {
		if inner, ok := strings.CutPrefix(line, "["); ok {
			inner, ok = strings.CutSuffix(inner, "]")
			if !ok || inner == "" {
				return fmt.Errorf("%q: want [name]", line)
			}
			all = append(all, change{name: inner})
			return nil
		}
		if len(all) == 0 {
			return errors.New("before the first [name]")
		}
		key, text, _ := strings.Cut(line, " ")
		c := &all[len(all)-1]
		switch key {
		case "file":
			c.file = text
		case "old":
			c.old = unescape.Replace(text)
		case "new":
			c.new = unescape.Replace(text)
		case "test":
			c.test = strings.Fields(text)
		default:
			return fmt.Errorf("%q: want file, old, new or test", key)
		}
		return nil
	})
	for _, c := range all {
		if err == nil && (c.file == "" || c.old == "" || len(c.test) == 0 || c.old == c.new) {
			err = fmt.Errorf("%s: [%s] needs file, old, new and test", filepath.Base(name), c.name)
		}
	}
	return all, err
}

var unescape = strings.NewReplacer(`\n`, "\n", `\t`, "\t", `\\`, `\`)

// atATime is how many parallel tests of a package run at a time. The slow ones wait more than they
// work: with as many as there are CPUs, those of the scheduler take 75 seconds, of which 8 of CPU.
const atATime = "8"

// testLimit bounds the tests of one change: one that hangs is noticed, too.
const testLimit = 3 * time.Minute

// passes tells whether tests pass on the tree as it is.
func passes(ctx context.Context, root string, test []string) bool {
	_, err := command(ctx, root, goTest(testLimit, append([]string{"-exec", inMemory}, test...)...)...)
	return err == nil
}

// goTest runs tests without vet, which takes as long as many of them and is none.
func goTest(limit time.Duration, args ...string) []string {
	return append([]string{"go", "test", "-vet=off", "-count=1", "-failfast", "-timeout", limit.String()}, args...)
}

// try runs the tests with the change laid over the tree.
func (c change) try(ctx context.Context, root string) verdict {
	text, err := os.ReadFile(filepath.Join(root, c.file))
	if err != nil || strings.Count(string(text), c.old) != 1 {
		return stale
	}
	v, _ := overlaid(ctx, root, c.file, strings.Replace(string(text), c.old, c.new, 1), testLimit, c.test...)
	return v
}

// overlaid runs tests of the tree in which one file has another text. What does not build, or
// runs no test, is stale.
func overlaid(ctx context.Context, root, file, text string, limit time.Duration, test ...string) (v verdict, out string) {
	if ctx.Err() != nil {
		return notReached, ""
	}
	dir, err := os.MkdirTemp("", "mutate")
	if err != nil {
		return notReached, out
	}
	defer os.RemoveAll(dir)
	changed, overlay := filepath.Join(dir, filepath.Base(file)), filepath.Join(dir, "overlay.json")
	path, err := filepath.Abs(filepath.Join(root, file))
	if err != nil {
		return notReached, out
	}
	b, err := json.Marshal(map[string]map[string]string{"Replace": {path: changed}})
	if err == nil {
		err = errors.Join(os.WriteFile(changed, []byte(text), 0o600), os.WriteFile(overlay, b, 0o600))
	}
	if err != nil {
		return notReached, out
	}
	args := append([]string{"-overlay", overlay, "-exec", inMemory}, test...)
	out, err = command(ctx, root, goTest(limit, args...)...)
	switch {
	case ctx.Err() != nil:
		return notReached, out
	case err == nil && !strings.Contains(out, "no tests to run"):
		return survived, out
	case err == nil, strings.Contains(out, "[build failed]"), strings.Contains(out, "[setup failed]"):
		return stale, out // it says nothing of the tests
	}
	return killed, out
}

// command runs a program until ctx ends, with whatever it started.
func command(ctx context.Context, dir string, args ...string) (output string, err error) {
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "GOFLAGS="+os.Getenv("GOFLAGS")+" -parallel="+atATime)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	cmd.WaitDelay = 10 * time.Second
	b, err := cmd.CombinedOutput()
	return string(b), err
}
