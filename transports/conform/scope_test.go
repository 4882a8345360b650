package conform

import (
	"fmt"
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

func TestDocumentedScopeIsThatOfTheTable(t *testing.T) {
	want := scopeTable()
	page, err := os.ReadFile("../../docs/reference/conformance.md")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(page), want) {
		t.Errorf("docs/reference/conformance.md does not have this table:\n%s", want)
	}
	if !slices.Contains(strings.Fields(ScopeText()), "requirements") {
		t.Error(ScopeText())
	}
}

// scopeTable is the areas of the catalogue as a table of Markdown, and below it what is not covered, with the reasons.
func scopeTable() string {
	var b strings.Builder
	b.WriteString("| area | requirements | covered | by |\n|---|---|---|---|\n")
	for i := range Areas {
		a := &Areas[i]
		fmt.Fprintf(&b, "| %s | %d | %d | %s |\n", a.Name, a.Requirements, a.covered(), a.By)
	}
	fmt.Fprintf(&b, "\n%s. Not covered:\n\n", ScopeText())
	for i := range Areas {
		for _, x := range Areas[i].Absent {
			fmt.Fprintf(&b, "- %s: %s (%d): %s.\n", Areas[i].Name, x.What, x.Count, x.Reason)
		}
	}
	return b.String()
}
