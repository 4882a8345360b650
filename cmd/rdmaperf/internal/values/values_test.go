package values

import (
	"slices"
	"testing"
	"time"

	"github.com/spf13/pflag"
)

func TestDurationsHaveAUnitOrAreSeconds(t *testing.T) {
	for s, want := range map[string]time.Duration{"3": 3 * time.Second, "3s": 3 * time.Second,
		"500ms": 500 * time.Millisecond, "1m": time.Minute, "0.5": 500 * time.Millisecond} {
		if got, err := Duration(s); err != nil || got != want {
			t.Errorf("Duration(%q) = %v, %v, want %v", s, got, err, want)
		}
	}
	for _, s := range []string{"", "0", "-1", "0s", "x", "1.5.5", "."} {
		if got, err := Duration(s); err == nil {
			t.Errorf("Duration(%q) = %v, want an error", s, got)
		}
	}
}

func TestCountsAreReadAsPeopleWriteThem(t *testing.T) {
	for s, want := range map[string]int64{"1000": 1000, "10k": 10_000, "10K": 10_000, "2M": 2_000_000,
		"1g": 1_000_000_000, "1e3": 1000, "2.5e3": 2500, "0": 0, "-5": -5} {
		var c Count
		if err := c.Set(s); err != nil || int64(c) != want {
			t.Errorf("%q: %d, %v, want %d", s, c, err, want)
		}
	}
	for _, s := range []string{"", "k", "10q", "1.5", "1e-3", "1e300", "0x10", "10 k", "9223372036854775807k", "NaN",
		"Infe"} {
		var c Count
		if err := c.Set(s); err == nil {
			t.Errorf("%q is read as %d", s, c)
		}
	}
}

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

func TestSweepsAreListsOrRanges(t *testing.T) {
	for _, c := range []struct {
		in   string
		want []float64
	}{
		{"5", []float64{5}}, {"10, 20,5", []float64{10, 20, 5}}, {"1:3:1", []float64{1, 2, 3}},
		{"1:3.5:1", []float64{1, 2, 3}}, {"0.1:0.3:0.1", []float64{0.1, 0.2, 0.30000000000000004}},
		{"7:7:2", []float64{7}}, {"", nil}, {"1:2", nil}, {"1:2:3:4", nil}, {"2:1:1", nil}, {"1:2:0", nil},
		{"1:2:-1", nil}, {"0", nil}, {"-1", nil}, {"x", nil}, {"NaN", nil}, {"Inf", nil}, {"1,1", nil},
		{"1:1e9:1", nil}, {"1,,2", nil},
	} {
		got, err := Sweep("rate-sweep", c.in)
		if !slices.Equal(got, c.want) || (err == nil) != (c.want != nil) {
			t.Errorf("%q: %v, %v, want %v", c.in, got, err, c.want)
		}
	}
}
