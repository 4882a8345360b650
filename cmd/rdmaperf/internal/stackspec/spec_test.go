package stackspec

import (
	"reflect"
	"strings"
	"testing"
)

func TestParseStack(t *testing.T) {
	for spec, want := range map[string][]Layer{
		"iwarp":                 {{Name: "iwarp"}},
		"iwarp(crc,markers)":    {{Name: "iwarp", Params: []string{"crc", "markers"}}},
		"sched(strict)+iwarp":   {{Name: "sched", Params: []string{"strict"}}, {Name: "iwarp"}},
		"grpc+sched+verbs:rxe0": {{Name: "grpc"}, {Name: "sched"}, {Name: "verbs", Device: "rxe0"}},
		"tcp( sndbuf=64K )":     {{Name: "tcp", Params: []string{"sndbuf=64K"}}},
	} {
		if got, err := Parse(spec); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("Parse(%q) = %+v, %v, want %+v", spec, got, err, want)
		}
	}
	for _, spec := range []string{"", "+", "iwarp+", "iwarp(", "iwarp)", "iwarp()", "iwarp(a", "iwarp(a))",
		"iwarp((a))", "iwarp(a)b", "iwarp:", "iwarp:a:b", "IWARP", "i warp"} {
		if got, err := Parse(spec); err == nil {
			t.Errorf("Parse(%q) = %+v, want an error", spec, got)
		}
	}
}

// No spec makes the parser panic, and what it takes apart fits together again.
func FuzzParseStack(f *testing.F) {
	for _, s := range []string{"iwarp", "sched(strict,slice=16KiB)+iwarp(crc)", "verbs:rxe0", "a(b)+c(d,e):f", "(",
		"+,)"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		layers, err := Parse(s)
		if err != nil {
			return
		}
		var parts []string
		for _, l := range layers {
			p := l.Name
			if l.Params != nil {
				p += "(" + strings.Join(l.Params, ",") + ")"
			}
			if l.Device != "" {
				p += ":" + l.Device
			}
			parts = append(parts, p)
		}
		again, err := Parse(strings.Join(parts, "+"))
		if err != nil || !reflect.DeepEqual(again, layers) {
			t.Fatalf("%q → %q → %+v, %v", s, parts, again, err)
		}
	})
}
