package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strconv"
)

// build links every test binary. All are linked before the first runs: a linker
// beside a test takes the CPU whose clock the test reads.
func (k kind) build(ctx context.Context, root string) error {
	packs, without, err := list(root)
	if err != nil {
		return err
	}
	// A binary has the name of its package's directory, which several packages may
	// have, and one `go test -c` makes one binary of a name.
	rounds := rounds(packs)
	for r, round := range rounds {
		dir, err := filepath.Abs(filepath.Join(k.dir, k.name(), strconv.Itoa(r)))
		if err != nil {
			return err
		}
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
		args := []string{"test", "-c", "-vet=off", "-ldflags=-s -w", "-o", dir + "/"}
		if k.race {
			args = append(args, "-race")
		}
		for _, i := range round {
			args = append(args, packs[i].Path)
			packs[i].Bin = filepath.Join(dir, path.Base(packs[i].Path)+".test")
		}
		cmd := exec.CommandContext(ctx, "go", args...)
		cmd.Dir = root
		cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
		if err := cmd.Run(); err != nil {
			return fmt.Errorf("link the tests (%s): %w", k.name(), err)
		}
	}
	clocks := 0
	for _, p := range packs {
		if p.Clocks {
			clocks++
		}
	}
	fmt.Printf("%s: %d packages with tests, %d of them with clocks; %d packages without tests\n", k.name(), len(packs), clocks, without)
	text, err := json.MarshalIndent(packs, "", "\t")
	if err != nil {
		return err
	}
	return os.WriteFile(k.packs(), text, 0o644)
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
