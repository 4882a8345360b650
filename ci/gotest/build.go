package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
)

// build sees to it that every test binary is there: those whose packages are as they were
// when it was linked last are taken from the store, the others linked. All are there before
// the first runs: a linker beside a test takes the CPU whose clock the test reads.
func (k kind) build(ctx context.Context) error {
	root := k.root
	packs, without, err := list(root)
	if err != nil {
		return err
	}
	only := []string{"./..."}
	if k.rest {
		if packs, err = left(packs, kind{dir: k.dir, race: true}); err != nil {
			return err
		}
		only = only[:0]
		for _, p := range packs {
			only = append(only, p.Path)
		}
	}
	s, err := openStore(k.cache)
	if err != nil {
		return err
	}
	keys, err := k.keys(ctx, root, only)
	if err != nil {
		return err
	}
	var missing []pack
	clocks := 0
	for i := range packs {
		p := &packs[i]
		key := keys[p.Path]
		if key == "" {
			return fmt.Errorf("go list tells nothing of the tests of %s", p.Path)
		}
		p.Bin = s.file(key)
		if !s.use(key) {
			missing = append(missing, *p)
		}
		if p.Clocks {
			clocks++
		}
	}
	if err := k.link(ctx, root, s.dir, missing); err != nil {
		return fmt.Errorf("link the tests (%s): %w", k.name(), err)
	}
	s.prune()
	fmt.Printf("%s: %d packages with tests, %d of them with clocks; %d packages without tests; %d test binaries linked, the others are unchanged\n",
		k.name(), len(packs), clocks, without, len(missing))
	text, err := json.MarshalIndent(packs, "", "\t")
	if err != nil {
		return err
	}
	return os.WriteFile(k.packs(), text, 0o644)
}

// link links the tests of packages, each to its Bin. Below is a directory of the same
// file system.
func (k kind) link(ctx context.Context, root, below string, packs []pack) error {
	dir, err := os.MkdirTemp(below, "link-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	// A binary has the name of its package's directory, which several packages may
	// have, and one `go test -c` makes one binary of a name.
	for _, round := range rounds(packs) {
		args := append([]string{"test", "-c", "-vet=off", ldflags, "-o", dir + "/"}, k.flags()...)
		for _, i := range round {
			args = append(args, packs[i].Path)
		}
		cmd := exec.CommandContext(ctx, "go", args...)
		cmd.Dir = root
		cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
		if err := cmd.Run(); err != nil {
			return err
		}
		for _, i := range round {
			if err := os.Rename(filepath.Join(dir, path.Base(packs[i].Path)+".test"), packs[i].Bin); err != nil {
				return err
			}
		}
	}
	return nil
}

// ldflags leave out what only a debugger reads: linking takes half the time.
const ldflags = "-ldflags=-s -w"

// flags are what the build of a kind needs.
func (k kind) flags() []string {
	if k.race {
		return []string{"-race"}
	}
	return nil
}

// rounds puts packages of one name into different rounds.
func rounds(packs []pack) [][]int {
	var all [][]int
	seen := map[string]int{}
	for i, p := range packs {
		r := seen[path.Base(p.Path)]
		seen[path.Base(p.Path)]++
		if r == len(all) {
			all = append(all, nil)
		}
		all[r] = append(all[r], i)
	}
	return all
}
