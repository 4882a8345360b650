package conform

import (
	"bytes"
	"os"
	"slices"
	"strings"
	"testing"
)

// TestScopeNamesGroupsThatExist: an area is covered by groups of cases, suites or scripts
// that are there, and is never short of more than it has.
func TestScopeNamesGroupsThatExist(t *testing.T) {
	groups := map[string]bool{}
	for _, c := range Catalogue() {
		groups[c.Group()] = true
	}
	for i := range Areas {
		a := &Areas[i]
		if a.covered() < 0 || (a.covered() > 0) != (a.By != "") {
			t.Errorf("%s: %d of %d covered by %q", a.Name, a.covered(), a.Requirements, a.By)
		}
		for _, by := range strings.Split(a.By, ", ") {
			_, err := os.Stat("../../" + by)
			switch {
			case by == "", by == "--wire", by == "grpc and lite suites", groups[by]:
			case strings.HasPrefix(by, "ci/") && err == nil:
			default:
				t.Errorf("%s: covered by %q, which is not there", a.Name, by)
			}
		}
	}
	if covered, all := Scope(); all < 290 || covered >= all {
		t.Errorf("%d of %d", covered, all)
	}
}

// TestDocumentedScopeIsThatOfTheTable: docs/conformance.md has the table that WriteScope writes.
func TestDocumentedScopeIsThatOfTheTable(t *testing.T) {
	var want bytes.Buffer
	if err := WriteScope(&want); err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("../../docs/conformance.md")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(page, want.Bytes()) {
		t.Errorf("docs/conformance.md does not have this table:\n%s", want.String())
	}
	if !slices.Contains(strings.Fields(ScopeText()), "requirements") {
		t.Error(ScopeText())
	}
}
