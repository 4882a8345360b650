package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// store keeps what became of each change in a folder, so that a run goes on where an earlier one
// ended. What survived is kept as long as all Go files of the package are the same, and the tests
// of others that are held against it; what was killed as long as those that are no tests are: more
// tests kill no less. Where tests were taken
// away, and for changes of other packages, which seldom matter, a new folder is the way. A nil
// store keeps nothing.
type store struct {
	root, dir string
	packages  map[string][2]string // digests by folder: of the code, and with tests
	also      map[string][]string  // folders whose tests are held against the code of one, too
}

const (
	ofCode = iota
	withTests
)

var words = map[string]verdict{"killed": killed, "survived": survived, "stale": stale, "untested": untested}

func openStore(root, dir string) (*store, error) {
	if dir == "" {
		return nil, nil
	}
	return &store{root, dir, map[string][2]string{}, map[string][]string{}}, os.MkdirAll(dir, 0o755)
}

// verdict is what an earlier run found, if it is kept and still holds.
func (s *store) verdict(o operator) (verdict, bool) {
	if s == nil {
		return 0, false
	}
	for _, o.kind = range o.names() {
		for which := range []int{ofCode, withTests} {
			b, err := os.ReadFile(s.name(o, which))
			if v, ok := words[string(bytes.TrimSpace(b))]; err == nil && ok {
				return v, true
			}
		}
	}
	return 0, false
}

// keep writes a verdict down; what cannot be written is tried again by the next run.
func (s *store) keep(o operator, v verdict) {
	if s == nil {
		return
	}
	which := ofCode
	if v == survived || v == untested {
		which = withTests
	}
	for word, w := range words {
		if w == v {
			name := s.name(o, which)
			if os.MkdirAll(filepath.Dir(name), 0o755) == nil {
				_ = os.WriteFile(name, []byte(word+"\n"), 0o644)
			}
		}
	}
}

// name is DIR/DIGEST/FILE-LINE-COLUMN-KIND.
func (s *store) name(o operator, which int) string {
	pkg := filepath.Dir(o.file)
	digests, ok := s.packages[pkg]
	if !ok {
		code, all := sha256.New(), sha256.New()
		names, _ := filepath.Glob(filepath.Join(s.root, pkg, "*.go")) // the pattern is a good one
		for _, name := range names {
			text, err := os.ReadFile(name)
			fmt.Fprintf(all, "%s %d %v\n%s", filepath.Base(name), len(text), err, text)
			if !strings.HasSuffix(name, "_test.go") {
				fmt.Fprintf(code, "%s %d %v\n%s", filepath.Base(name), len(text), err, text)
			}
		}
		for _, other := range s.also[pkg] {
			names, _ := filepath.Glob(filepath.Join(s.root, other, "*_test.go"))
			for _, name := range names {
				text, err := os.ReadFile(name)
				fmt.Fprintf(all, "%s %d %v\n%s", filepath.Base(name), len(text), err, text)
			}
		}
		digests = [2]string{hex.EncodeToString(code.Sum(nil)[:8]), hex.EncodeToString(all.Sum(nil)[:8])}
		s.packages[pkg] = digests
	}
	return filepath.Join(s.dir, digests[which], fmt.Sprintf("%s-%d-%d-%s", filepath.Base(o.file), o.line, o.column, o.kind))
}
