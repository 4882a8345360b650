package workload

import (
	"slices"
	"testing"

	"github.com/spf13/pflag"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/room"
)

// Every flag that a row names is one that it registers, or one that workloads share, and
// every flag that it registers stands in the help of some row or of the common part.
func TestRowsNameTheirFlags(t *testing.T) {
	shared := []string{"outstanding", "rate", "rate-sweep", "bidirectional", "arms", "offload", "deferred"}
	seen := map[string]string{}
	for _, r := range Rooms {
		set := pflag.NewFlagSet(r.Name, pflag.ContinueOnError)
		r.Flags().Register(set)
		for _, name := range slices.Concat(append([][]string{r.Names, r.Own}, r.Means...)...) {
			if set.Lookup(name) == nil && !slices.Contains(shared, name) {
				t.Errorf("%s names --%s, which it does not register", r.Name, name)
			}
		}
		set.VisitAll(func(f *pflag.Flag) {
			if !slices.Contains(r.Names, f.Name) && !slices.Contains(shared, f.Name) {
				t.Errorf("%s registers --%s, which its help does not name", r.Name, f.Name)
			}
			if other := seen[f.Name]; other != "" && !slices.Contains(shared, f.Name) {
				t.Errorf("%s and %s both register --%s", r.Name, other, f.Name)
			}
			seen[f.Name] = r.Name
		})
	}
}

func TestRowsAreUnique(t *testing.T) {
	names := room.Names(Rooms)
	for i, n := range names {
		if n == "" || slices.Contains(names[:i], n) {
			t.Errorf("row %d: name %q", i, n)
		}
		if w := Rooms[i].Results; w != nil && w.Name != n {
			t.Errorf("row %d: %q has the results of %q", i, n, w.Name)
		}
	}
}
