package ci

import (
	"slices"
	"strings"
	"testing"
)

// A row of the table of imports that stands twice, or that no package has because an
// earlier one takes them all, rules nothing.
func TestEveryRowOfImportsRulesSomething(t *testing.T) {
	used := make([]bool, len(allowed))
	for _, p := range list(t) {
		name, ours := strings.CutPrefix(p.ImportPath, module)
		if !ours {
			continue
		}
		for i := range allowed {
			if below(name, allowed[i].pkg) {
				used[i] = true
				break
			}
		}
	}
	for i, row := range allowed {
		if !used[i] {
			t.Errorf("the row of %s rules no package", row.pkg)
		}
		for j, m := range row.may {
			if slices.Contains(row.may[:j], m) {
				t.Errorf("the row of %s allows %s twice", row.pkg, m)
			}
		}
	}
}
