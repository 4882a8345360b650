package values

import (
	"testing"

	"github.com/spf13/pflag"
)

func TestAListGivenAgainGrows(t *testing.T) {
	for want, args := range map[string][]string{
		"1,2":                    nil,
		"8":                      {"--users", "8"},
		"8,16,32":                {"--users", "8,16", "--users=32"},
		"sched(slice=4K),b(c,d)": {"--users", "sched(slice=4K)", "--users", "b(c,d)"},
	} {
		var got string
		f := pflag.NewFlagSet("", pflag.ContinueOnError)
		ListVar(f, &got, "users", "1,2", "")
		if err := f.Parse(args); err != nil || got != want || f.Lookup("users").Value.String() != want {
			t.Errorf("%q: %q, %v, want %q", args, got, err, want)
		}
	}
}
