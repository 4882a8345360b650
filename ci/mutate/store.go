package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
)

// store keeps what became of each change in a folder, so that a run goes on where an earlier one
// ended. What is kept holds as long as the Go files of the package are the same; of other
// packages, whose changes seldom matter to its tests, nothing is asked. A nil store keeps nothing.
type store struct {
	root, dir string
	packages  map[string]string // digest by folder
}

var words = map[string]verdict{"killed": killed, "survived": survived, "stale": stale}

func openStore(root, dir string) (*store, error) {
	if dir == "" {
		return nil, nil
	}
	return &store{root, dir, map[string]string{}}, os.MkdirAll(dir, 0o755)
}

// verdict is what an earlier run found, if it is kept and still holds.
func (s *store) verdict(o operator) (verdict, bool) {
	if s == nil {
		return 0, false
	}
	b, err := os.ReadFile(s.name(o))
	v, ok := words[string(bytes.TrimSpace(b))]
	return v, err == nil && ok
}

// keep writes a verdict down; what cannot be written is tried again by the next run.
func (s *store) keep(o operator, v verdict) {
	if s == nil {
		return
	}
	for word, w := range words {
		if w == v {
			name := s.name(o)
			if os.MkdirAll(filepath.Dir(name), 0o755) == nil {
				_ = os.WriteFile(name, []byte(word+"\n"), 0o644)
			}
		}
	}
}

// name is DIR/DIGEST OF THE PACKAGE/FILE-LINE-COLUMN-KIND.
func (s *store) name(o operator) string {
	pkg := filepath.Dir(o.file)
	digest, ok := s.packages[pkg]
	if !ok {
		h := sha256.New()
		names, _ := filepath.Glob(filepath.Join(s.root, pkg, "*.go")) // the pattern is a good one
		for _, name := range names {
			text, err := os.ReadFile(name)
			fmt.Fprintf(h, "%s %d %v\n%s", filepath.Base(name), len(text), err, text)
		}
		digest = hex.EncodeToString(h.Sum(nil)[:8])
		s.packages[pkg] = digest
	}
	return filepath.Join(s.dir, digest, fmt.Sprintf("%s-%d-%d-%s", filepath.Base(o.file), o.line, o.column, o.kind))
}
