package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"
)

// kept is what became of a part that passed, and all that it depended on beside its binary
// and its arguments. As with go test, a part whose dependencies are as they were is not run
// again: what it read of the tree and of the environment is known from the log that package
// testing writes. Tests that start programs read what no log tells: they depend on every file
// of the tree.
type kept struct {
	At      time.Time // when it ran
	Env     map[string]string
	Files   map[string]string // name below the top of the tree → what was in it
	Tree    string            // of all files, where programs are started
	Results []*result
}

// keptFor is how long what became of tests is believed: each runs once a day at least,
// changed or not, so that one that fails now and then is found. Arbitrary.
const keptFor = 24 * time.Hour

// own is the variable that a test has from us: where its package is, which is another place in
// every clone.
const own = "PWD"

// ground is what all parts stand on.
type ground struct {
	root    string // top of the tree
	dir     string // where results are kept
	tree    string // of all files
	machine string // what tests ask of it and find in no file of the tree
}

// newGround looks at the tree and the machine once, before anything runs.
func newGround(ctx context.Context, root, dir string) (*ground, error) {
	root, err := filepath.Abs(root)
	if err != nil {
		return nil, err
	}
	tree, err := treeOf(ctx, root)
	if err != nil {
		return nil, fmt.Errorf("what is in the tree: %w", err)
	}
	return &ground{root: root, dir: dir, tree: tree, machine: machine()}, nil
}

// treeOf names the content of all files that git tracks or would add.
func treeOf(ctx context.Context, root string) (string, error) {
	list := exec.CommandContext(ctx, "git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	list.Dir = root
	out, err := list.Output()
	if err != nil {
		return "", fmt.Errorf("git ls-files: %w", err)
	}
	h := sha256.New()
	names := strings.Split(strings.TrimRight(string(out), "\x00"), "\x00")
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		fmt.Fprintf(h, "%q %s\n", name, content(filepath.Join(root, name)))
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// machine names kernel, user, CPUs, and the devices without which tests are skipped. Who looks
// for programs reads PATH, which is in his log.
func machine() string {
	var u syscall.Utsname
	_ = syscall.Uname(&u)
	var release []byte
	for _, c := range u.Release {
		if c == 0 {
			break
		}
		release = append(release, byte(c))
	}
	s := fmt.Sprintf("%s, user %d, %d CPUs", release, os.Getuid(), runtime.NumCPU())
	for _, pattern := range []string{"/sys/class/infiniband/*", "/dev/infiniband/*", "/dev/net/tun", "/dev/userfaultfd", "/dev/kvm", "/dev/cpu_dma_latency"} {
		found, _ := filepath.Glob(pattern)
		s += fmt.Sprint(found)
	}
	return s
}

// content names what a file or directory holds, in one word.
func content(name string) string {
	info, err := os.Stat(name)
	if err != nil {
		return "none"
	}
	h := sha256.New()
	if info.IsDir() {
		entries, err := os.ReadDir(name)
		if err != nil {
			return "unreadable"
		}
		for _, e := range entries {
			fmt.Fprintf(h, "%q %v\n", e.Name(), e.Type())
		}
		return "directory " + hex.EncodeToString(h.Sum(nil))
	}
	if !info.Mode().IsRegular() {
		return info.Mode().String()
	}
	f, err := os.Open(name)
	if err != nil {
		return "unreadable"
	}
	defer f.Close()
	if _, err := io.Copy(h, f); err != nil {
		return "unreadable"
	}
	return info.Mode().String() + " " + hex.EncodeToString(h.Sum(nil))
}

// file is where the results of a part are, by its binary, its arguments and the machine.
func (g *ground) file(p part, args []string) string {
	h := sha256.New()
	fmt.Fprintf(h, "%s\n%s\n%q\n%s\n", filepath.Base(p.Bin), p.Path, args, g.machine)
	return filepath.Join(g.dir, hex.EncodeToString(h.Sum(nil))+".results")
}

// same returns what became of a part when it ran last, where nothing that it depends on
// changed since, it passed, and that was less than keptFor ago; else nil.
func (g *ground) same(p part, args []string, now time.Time) *kept {
	text, err := os.ReadFile(g.file(p, args))
	if err != nil {
		return nil
	}
	k := new(kept)
	if err := json.Unmarshal(text, k); err != nil || len(k.Results) == 0 {
		return nil
	}
	if age := now.Sub(k.At); age < 0 || age > keptFor || k.Tree != "" && k.Tree != g.tree {
		return nil
	}
	for name, was := range k.Env {
		if name != own && word(os.Getenv(name)) != was {
			return nil
		}
	}
	for name, was := range k.Files {
		if content(filepath.Join(g.root, name)) != was {
			return nil
		}
	}
	return k
}

// keep remembers what became of a part that passed, with the log of what it read.
func (g *ground) keep(p part, args []string, all []*result, log []byte, began time.Time) error {
	if _, fail, _, _ := count(all); fail > 0 || len(log) == 0 {
		return nil
	}
	k := kept{At: began, Env: map[string]string{}, Files: map[string]string{}, Results: all}
	if p.Programs {
		k.Tree = g.tree
	}
	dir := p.Dir
	for line := range bytes.Lines(log) {
		what, name, _ := strings.Cut(strings.TrimSuffix(string(line), "\n"), " ")
		switch what {
		case "getenv":
			if name != own {
				k.Env[name] = word(os.Getenv(name))
			}
		case "chdir":
			dir = name
		case "open", "stat":
			if !filepath.IsAbs(name) {
				name = filepath.Join(dir, name)
			}
			// What lies elsewhere is the machine's, or made by the test itself.
			if below, err := filepath.Rel(g.root, name); err == nil && filepath.IsLocal(below) {
				k.Files[below] = content(name)
			}
		}
	}
	text, err := json.Marshal(k)
	if err != nil {
		return err
	}
	// Renamed, so that whoever reads beside us finds the whole or nothing.
	f, err := os.CreateTemp(g.dir, "results-")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	_, err = f.Write(text)
	if err := firstError(err, f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), g.file(p, args))
}

// word stands for the value of a variable, which may be a secret.
func word(value string) string {
	h := sha256.Sum256([]byte(value))
	return hex.EncodeToString(h[:8])
}

func firstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
