package ci

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/rdmaperf/rdmaperf/softstack/wiretest/suite"
	"github.com/rdmaperf/rdmaperf/transports/conform"
)

// TestTheLabsLedgersAreInOrder: the guest is slow to say that an entry is not.
func TestTheLabsLedgersAreInOrder(t *testing.T) {
	for file, cases := range map[string][]conform.Case{"lab/ledger.json": conform.Catalogue(),
		"lab/wire.json": suite.Catalogue()} {
		t.Run(file, func(t *testing.T) { checkLedger(t, file, cases) })
	}
}

// TestHazardsOfTheLabAreCases: what kernels die of is a case that is marked as a hazard,
// or runs beside those that are not.
func TestHazardsOfTheLabAreCases(t *testing.T) {
	b, err := os.ReadFile("lab/wire.hazards")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		line = strings.TrimSuffix(line, "\n")
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		f := strings.Split(line, "\t")
		if len(f) != 6 || !slices.Contains([]string{"dies", "complains", "sometimes"}, f[2]) || f[3] == "" ||
			f[4] == "" || f[5] == "" {
			t.Errorf("%q: want kernels, case, dies, complains or sometimes, what happens, source, date", line)
			continue
		}
		if !slices.ContainsFunc(suite.Catalogue(), func(c conform.Case) bool { return c.ID == f[1] && c.Hazard }) {
			t.Errorf("%s is no hazard of the suite", f[1])
		}
	}
}

func checkLedger(t *testing.T, file string, cases []conform.Case) {
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	l, err := conform.ReadLedger(f)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range l.Stale(cases) {
		t.Errorf("no case is called %q", e.Case)
	}
	for i, e := range l.Entries {
		if e.Sometimes && e.Got == "" {
			t.Errorf("entry %d, %s on %s: what depends on the moment has to name the failure", i+1, e.Case, e.Transport)
		}
	}
}
