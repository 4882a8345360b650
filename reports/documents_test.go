package reports

import (
	"slices"
	"testing"
)

// Documents that the shell found in directories by time are told apart by these.
func TestDocumentNames(t *testing.T) {
	for _, c := range []struct {
		files, want []string
	}{
		{[]string{""}, []string{""}},
		{[]string{"x/result.json"}, []string{"result.json"}},
		{[]string{"", "b/new.json"}, []string{"run 1", "new.json"}},
		{[]string{"r/1/result.json", "r/2/result.json", "base.json"}, []string{"1/result.json", "2/result.json",
			"base.json"}},
		{[]string{"/a/x/result.json", "/b/x/result.json"}, []string{"a/x/result.json", "b/x/result.json"}},
		{[]string{"/a/1/2/3/4/5/6/r.json", "/b/1/2/3/4/5/6/r.json"},
			[]string{"a/1/2/3/4/5/6/r.json", "b/1/2/3/4/5/6/r.json"}},
		{[]string{"r.json", "./r.json"}, []string{"r.json", "r.json (2)"}},
	} {
		if got := documentNames(c.files, len(c.files)); !slices.Equal(got, c.want) {
			t.Errorf("%q: %q, want %q", c.files, got, c.want)
		}
	}
}
