package lines_test

import (
	"io/fs"
	"testing"
	"testing/fstest"

	"github.com/rdmaperf/rdmaperf/transports/lite/apps/dsm"
	"github.com/rdmaperf/rdmaperf/transports/lite/apps/lines"
	"github.com/rdmaperf/rdmaperf/transports/lite/apps/log"
	"github.com/rdmaperf/rdmaperf/transports/lite/apps/pagerank"
	"github.com/rdmaperf/rdmaperf/transports/lite/apps/wordcount"
)

func TestLinesThatUseTheTierAreCounted(t *testing.T) {
	src := `// Package p is one.
package p

import "lite"

// A comment with lite.Open( in it.
func f(n *lite.Node) error {
	c, err := n.Client(lite.ClientConfig{})
	if err != nil {
		return err
	}

	return c.Barrier("b",
		4)
}
`
	all, tier, err := lines.Count(fstest.MapFS{"a.go": {Data: []byte(src)},
		"a_test.go": {Data: []byte("package p\nfunc g() { c.Read() }\n")}})
	if err != nil || all != 8 || tier != 3 {
		t.Errorf("%d lines, %d of the tier, %v", all, tier, err)
	}
}

func TestTheLinesThatUseTheTierAreFew(t *testing.T) {
	for name, source := range map[string]fs.FS{"dsm": dsm.Source, "log": log.Source, "pagerank": pagerank.Source,
		"wordcount": wordcount.Source} {
		all, tier, err := lines.Count(source)
		if t.Logf("%s: %d lines, %d use LITE", name, all, tier); err != nil || tier < 5 || tier > 50 {
			t.Errorf("%s: %d of %d lines, %v", name, tier, all, err)
		}
	}
}
