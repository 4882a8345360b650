package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// keys tells for each package with tests what its test binary is made of: one word that
// changes when any package in it does, the Go release, or how it is linked. It compiles what
// is not in the build cache, and links nothing; go test -c compiles nothing again.
func (k kind) keys(ctx context.Context, root string, packages []string) (map[string]string, error) {
	if len(packages) == 0 {
		return nil, nil
	}
	how, err := goOutput(ctx, root, "env", "GOVERSION", "GOOS", "GOARCH", "GOAMD64", "GOARM64", "GOEXPERIMENT", "GOFLAGS", "CGO_ENABLED", "CC", "CGO_LDFLAGS")
	if err != nil {
		return nil, err
	}
	args := append([]string{"list", "-test", "-deps", "-export", "-json=ImportPath,BuildID,Deps"}, k.flags()...)
	out, err := goOutput(ctx, root, append(args, packages...)...)
	if err != nil {
		return nil, err
	}
	return keysOf(out, strings.Join(append(k.flags(), ldflags, how), "\n"))
}

// keysOf makes the keys of what `go list -test -deps -export` wrote.
func keysOf(list, how string) (map[string]string, error) {
	type built struct {
		ImportPath, BuildID string
		Deps                []string
	}
	// The second half of a build ID is a hash of what the compiler wrote.
	content := map[string]string{}
	var tests []built
	for dec := json.NewDecoder(strings.NewReader(list)); ; {
		var b built
		if err := dec.Decode(&b); err == io.EOF {
			break
		} else if err != nil {
			return nil, fmt.Errorf("go list: %w", err)
		}
		content[b.ImportPath] = b.BuildID[strings.LastIndexByte(b.BuildID, '/')+1:]
		if strings.HasSuffix(b.ImportPath, ".test") {
			tests = append(tests, b)
		}
	}
	keys := map[string]string{}
	for _, b := range tests {
		h := sha256.New()
		fmt.Fprintln(h, how)
		slices.Sort(b.Deps)
		for _, name := range append(b.Deps, b.ImportPath) {
			if content[name] == "" && name != "unsafe" && name != "C" {
				return nil, fmt.Errorf("go list tells no build ID of %s, which %s has in it", name, b.ImportPath)
			}
			fmt.Fprintln(h, name, content[name])
		}
		keys[strings.TrimSuffix(b.ImportPath, ".test")] = hex.EncodeToString(h.Sum(nil))
	}
	return keys, nil
}

func goOutput(ctx context.Context, root string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir, cmd.Stderr = root, os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("go %s: %w", args[0], err)
	}
	return string(out), nil
}

// store keeps test binaries by what they are made of, and what became of them (kept.go).
type store struct {
	dir   string
	limit int64 // bytes that are kept
}

// A set of both kinds is 1.6 GB; three and what changed of them fit. Arbitrary.
const storeLimit = 6 << 30

// inUse is how long a binary is left alone after somebody asked for it: he runs it. Longer
// than all tests together take.
const inUse = 2 * time.Hour

// openStore opens the one in a directory, or the user's own in $XDG_CACHE_HOME/rdmaperf-tests.
func openStore(dir string) (store, error) {
	if dir == "" {
		cache, err := os.UserCacheDir()
		if err != nil {
			return store{}, fmt.Errorf("keep test binaries: %w", err)
		}
		dir = filepath.Join(cache, "rdmaperf-tests")
	}
	return store{dir: dir, limit: storeLimit}, os.MkdirAll(dir, 0o755)
}

func (s store) file(key string) string { return filepath.Join(s.dir, key+".test") }

// use tells whether a binary is there, and that it is wanted now.
func (s store) use(key string) bool {
	now := time.Now()
	return os.Chtimes(s.file(key), now, now) == nil
}

// prune removes the binaries that nobody asked for longest, until the rest is small enough.
// What cannot be removed stays.
func (s store) prune() {
	type kept struct {
		name string
		at   time.Time
		size int64
	}
	var all []kept
	entries, _ := os.ReadDir(s.dir)
	for _, e := range entries {
		if info, err := e.Info(); err == nil {
			all = append(all, kept{e.Name(), info.ModTime(), info.Size()})
		}
	}
	slices.SortFunc(all, func(a, b kept) int { return b.at.Compare(a.at) })
	var sum int64
	for _, f := range all {
		if sum += f.size; sum > s.limit && time.Since(f.at) > inUse {
			os.RemoveAll(filepath.Join(s.dir, f.name)) // also what an interrupted link left
		}
	}
}
