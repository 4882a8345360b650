package main

import (
	"reflect"
	"strings"
	"testing"
)

func TestParseStack(t *testing.T) {
	for spec, want := range map[string][]layer{
		"iwarp":                 {{name: "iwarp"}},
		"iwarp(crc,markers)":    {{name: "iwarp", params: []string{"crc", "markers"}}},
		"sched(strict)+iwarp":   {{name: "sched", params: []string{"strict"}}, {name: "iwarp"}},
		"grpc+sched+verbs:rxe0": {{name: "grpc"}, {name: "sched"}, {name: "verbs", device: "rxe0"}},
		"tcp( sndbuf=64K )":     {{name: "tcp", params: []string{"sndbuf=64K"}}},
	} {
		if got, err := parseStack(spec); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("parseStack(%q) = %+v, %v, want %+v", spec, got, err, want)
		}
	}
	for _, spec := range []string{"", "+", "iwarp+", "iwarp(", "iwarp)", "iwarp()", "iwarp(a", "iwarp(a))", "iwarp((a))", "iwarp(a)b", "iwarp:", "iwarp:a:b", "IWARP", "i warp"} {
		if got, err := parseStack(spec); err == nil {
			t.Errorf("parseStack(%q) = %+v, want an error", spec, got)
		}
	}
}

// No spec makes the parser panic, and what it takes apart fits together again.
func FuzzParseStack(f *testing.F) {
	for _, s := range []string{"iwarp", "sched(strict,slice=16KiB)+iwarp(crc)", "verbs:rxe0", "a(b)+c(d,e):f", "(", "+,)"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		layers, err := parseStack(s)
		if err != nil {
			return
		}
		var parts []string
		for _, l := range layers {
			p := l.name
			if l.params != nil {
				p += "(" + strings.Join(l.params, ",") + ")"
			}
			if l.device != "" {
				p += ":" + l.device
			}
			parts = append(parts, p)
		}
		again, err := parseStack(strings.Join(parts, "+"))
		if err != nil || !reflect.DeepEqual(again, layers) {
			t.Fatalf("%q → %q → %+v, %v", s, parts, again, err)
		}
	})
}
