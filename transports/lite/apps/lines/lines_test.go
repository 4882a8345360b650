package lines

import (
	"testing"
	"testing/fstest"
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
	all, tier, err := Count(fstest.MapFS{"a.go": {Data: []byte(src)},
		"a_test.go": {Data: []byte("package p\nfunc g() { c.Read() }\n")}})
	if err != nil || all != 8 || tier != 3 {
		t.Errorf("%d lines, %d of the tier, %v", all, tier, err)
	}
}
