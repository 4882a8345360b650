package stackspec

import (
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/cli"
	"github.com/rdmaperf/rdmaperf/reports"
)

// Every parameter has a name of its own in its layer, a line of help, and is taken in a form that it declares.
func TestEveryParameterIsDeclaredWhole(t *testing.T) {
	for i := range Table {
		e := &Table[i]
		seen := map[string]bool{}
		for _, d := range e.params.docs() {
			if seen[d.name] || d.Help == "" || strings.ContainsAny(d.name, "=,()+: ") {
				t.Errorf("%s: parameter %q is there twice, has no help or a bad name", e.Name, d.name)
			}
			seen[d.name] = true
			if (d.kind.parse == nil) != (d.kind.shown == "") {
				t.Errorf("%s(%s): a switch shows no value, all else does", e.Name, d.name)
			}
			for _, w := range d.kind.words {
				if _, err := d.kind.parse(w); err != nil {
					t.Errorf("%s(%s=%s) is named and refused: %v", e.Name, d.name, w, err)
				}
			}
		}
	}
}

// What is wrong with a parameter is told with the parameter and what it takes.
func TestMistakesInParametersAreTold(t *testing.T) {
	for _, c := range []struct{ spec, want, hint string }{
		{"iwarp(crx)", `unknown parameter "crx"`, "crc, nocrc"},
		{"iwarp(crc=1)", `parameter "crc=1": it has no value`, "crc, "},
		{"iwarp(sndbuf)", `parameter "sndbuf": it needs a value`, "sndbuf=BYTES"},
		{"iwarp(sndbuf=)", `it needs a value`, "sndbuf=BYTES"},
		{"iwarp(sndbuf=many)", `parameter "sndbuf=many"`, "sndbuf=BYTES"},
		{"iwarp(sndbuf=2G)", `above the limit of 1 GiB`, "sndbuf=BYTES"},
		{"iwarp(stack=userland)", `parameter "stack=userland": want kernel, raw`, "stack=kernel|raw"},
		{"iwarp(copies=two)", `parameter "copies=two": it belongs to stack=raw`, "stack=raw"},
		{"iwarp(stack=raw,copies=zero,threads=c1)", `with threads=c1 what is sent is copied`, ""},
		{"iwarp(stack=raw,local=1M)", `stack=raw has buffers of its own`, "stack=kernel"},
		{"iwarp(stack=netstack)", `parameter "stack=netstack": want kernel, raw`, "stack=kernel|raw"},
		{"iwarp(copies=zero)", `it belongs to stack=raw`, "stack=raw"},
		{"tcp(stack=raw,copies=zero)", `tcp is done with its memory when`, "copies=one|two"},
		{"tcp(crc)", `unknown parameter "crc"`, "sndbuf=BYTES"},
		{"mem(fast)", `unknown parameter "fast"`, "no parameters"},
		{"sched(weights=1:x)+mem", `parameter "weights=1:x": want 1 to`, "weights=N:…"},
		{"sched(every=soon)+mem", `want a time such as 50us`, "every=TIME"},
		{"sched(deadlines=1ms:2ms:3ms:4ms:5ms:6ms:7ms:8ms:9ms)+mem", `9 values, at most 8`, "deadlines=TIME:…"},
		{"verbs(port=0)", `parameter "port=0": want 1 to 255`, "port=N"},
		{"verbs(mtu=1000)", `want 256, 512`, "mtu=BYTES"},
		{"grpc(fused,pollers=0)+mem", `want 1 to 64`, "pollers=N"},
		{"grpc(fused,busy=1h)+mem", `want 0 to 1m`, "busy=TIME"},
	} {
		_, err := new(Set).Open(c.spec)
		if line := cli.ErrorLine(errors.Join(err)); reports.Code(err) != reports.ExitUsage ||
			!strings.Contains(line, c.want) || !strings.Contains(line, c.hint) {
			t.Errorf("%s: %v, exit code %d; want %q and %q", c.spec, line, reports.Code(err), c.want, c.hint)
		}
	}
}

func TestHelpTellsEveryParameter(t *testing.T) {
	text := strings.Join(strings.Fields(Help()), " ") // however it is broken into lines
	for _, s := range sections() {
		for _, d := range s.docs {
			if !strings.Contains(text, d.Shown()+" "+d.Help) {
				t.Errorf("help stacks does not tell %s of %s", d.Shown(), s.head)
			}
		}
	}
}

func TestStacksAreCompleted(t *testing.T) {
	heads := func(given string) (all []string) {
		for _, s := range stackCompletions(given) {
			head, _, _ := strings.Cut(s, "\t")
			all = append(all, head)
		}
		return all
	}
	for given, want := range map[string][]string{
		"iw":          {"iwarp"},
		"tcp,sched+i": {"tcp,sched+iwarp"},
		"sched+t":     nil, // tcp is no device
		"sched(sl":    {"sched(slice="},
		"tcp,sched(sends=re": {"tcp,sched(sends=whole", "tcp,sched(sends=refuse", "tcp,sched(sends=slice",
			"tcp,sched(sends=slice-or-refuse"},
		"iwarp(crc,mark":          {"iwarp(crc,markers"},
		"nothing(":                nil,
		"sched(strict)+iwarp(noc": {"sched(strict)+iwarp(nocrc"},
	} {
		if got := heads(given); !slices.Equal(got, want) {
			t.Errorf("%q goes on as %q, want %q", given, got, want)
		}
	}
}

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
