package ci

import (
	"os"
	"testing"

	"github.com/rdmaperf/rdmaperf/transports/conform"
)

// TestTheLabsLedgerIsInOrder: the guest is slow to say that an entry is not.
func TestTheLabsLedgerIsInOrder(t *testing.T) {
	f, err := os.Open("lab/ledger.json")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	l, err := conform.ReadLedger(f)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range l.Stale(conform.Catalogue()) {
		t.Errorf("no case is called %q", e.Case)
	}
	for i, e := range l.Entries {
		if e.Sometimes && e.Got == "" {
			t.Errorf("entry %d, %s on %s: what depends on the moment has to name the failure", i+1, e.Case, e.Transport)
		}
	}
}
