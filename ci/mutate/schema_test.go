package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// marked is a text without its marks @KIND@, and what gremlins prints of them. A mark stands
// before the operator.
func marked(file, text string) (plain, found string) {
	for text != "" {
		before, rest, _ := strings.Cut(text, "@")
		plain += before
		kind, after, ok := strings.Cut(rest, "@")
		if text = after; ok {
			line := plain[strings.LastIndex(plain, "\n")+1:]
			found += fmt.Sprintf("   RUNNABLE %s at %s:%d:%d\n", kind, file, 1+strings.Count(plain, "\n"), len(line)+1)
		}
	}
	return plain, found
}

// gremlinsThat finds what is given.
func gremlinsThat(t *testing.T, found string) string {
	return write(t, filepath.Join(t.TempDir(), "gremlins"), "#!/bin/sh\ncat <<'END'\n"+found+"END\n", 0o700)
}

// A change in a schema is what the language makes of the changed operator: whatever the types,
// wherever it stands, with operands evaluated once and in order. Asleep it is the code as it was.
func TestSchemasChangeWhatTheySay(t *testing.T) {
	rows := []struct{ code, asleep, changed string }{
		{"return i @CONDITIONALS_BOUNDARY@< 3", "false", "true"},
		{"return i @CONDITIONALS_NEGATION@< 3", "false", "true"},
		{"return i @CONDITIONALS_BOUNDARY@<= 3", "true", "false"},
		{"return 2 @CONDITIONALS_NEGATION@<= i", "true", "false"},
		{"return i @CONDITIONALS_BOUNDARY@> 3", "false", "true"},
		{"return i @CONDITIONALS_NEGATION@> 3", "false", "true"},
		{"return i @CONDITIONALS_BOUNDARY@>= 3", "true", "false"},
		{"return i @CONDITIONALS_NEGATION@>= 3", "true", "false"},
		{"return nan @CONDITIONALS_NEGATION@< 3", "false", "false"},
		{"return e @CONDITIONALS_NEGATION@== nil", "true", "false"},
		{"return [2]int{1} @CONDITIONALS_NEGATION@!= [2]int{}", "true", "false"},
		{"return s @CONDITIONALS_BOUNDARY@< \"c\"", "false", "true"},
		{"return i @ARITHMETIC_BASE@+ 1", "4", "2"},
		{"return i @ARITHMETIC_BASE@* 2", "6", "1"},
		{"return f @ARITHMETIC_BASE@/ 2", "1.25", "5"},
		{"return i @ARITHMETIC_BASE@% 2", "1", "6"},
		{"return @INVERT_NEGATIVES@-i", "-3", "3"},
		{"return uint8(200) @ARITHMETIC_BASE@+ b", "44", "100"},
		{"return 1<<i @ARITHMETIC_BASE@+ uint64(1)<<40", "1099511627784", "18446742974197923848"},
		{"return d @ARITHMETIC_BASE@- time.Second", "2s", "4s"},
		{"var y yes = i @CONDITIONALS_BOUNDARY@< 3; return y", "false", "true"},
		{"i@INCREMENT_DECREMENT@++; return i", "4", "2"},
		{"m := map[string]int{}; m[s]@INCREMENT_DECREMENT@--; return m", "map[c:-1]", "map[c:1]"},
		{"n := 0; for k := 9; k > 6 && k < 12; k@INCREMENT_DECREMENT@-- { n += k }; return n", "24", "30"},
		{"if i@INCREMENT_DECREMENT@++; i > 3 { return \"more\" }; return i", "more", "2"},
		{"switch { case i @CONDITIONALS_NEGATION@== 3: return 1 }; return 2", "1", "2"},
		{"return next() @ARITHMETIC_BASE@- next()*next()", "-5", "7"},
		{"return next() - next()@ARITHMETIC_BASE@*next()", "-5", "1"},
		{"return i*2 @CONDITIONALS_BOUNDARY@> // behind it\n(i+3)", "false", "true"},
		{"return least(i, 2@ARITHMETIC_BASE@*i)", "3", "0"},
	}
	var text, list strings.Builder
	text.WriteString(`package m
import ("math"; "time")
type yes bool
var (at int; e error; f, nan = 2.5, math.NaN(); b uint8 = 100; s = "c"; d = 3 * time.Second)
func next() int { at++; return at }
func least[T ~int | ~string](a, b T) T { if a @CONDITIONALS_BOUNDARY@< b { return a }; return b }
const c = 2 @ARITHMETIC_BASE@* 3
var v [2 @ARITHMETIC_BASE@* 3]int
var j = s @ARITHMETIC_BASE@+ "d"
`)
	const unsaid = 4 // changes above, of which only the first is in the schema
	for n, r := range rows {
		fmt.Fprintf(&text, "func f%d() any { i := 3; at = 0; _ = i; %s }\n", n, r.code)
		fmt.Fprintf(&list, "f%d, ", n)
	}
	dir := t.TempDir()
	plain, found := marked("m.go", text.String())
	write(t, filepath.Join(dir, "go.mod"), "module m\n\ngo 1.26\n", 0o600)
	write(t, filepath.Join(dir, "m.go"), plain, 0o600)
	write(t, filepath.Join(dir, "m_test.go"), "package m\nimport (\"fmt\"; \"testing\")\n"+
		"func TestAll(t *testing.T) { for n, f := range []func() any{"+list.String()+"} { fmt.Printf(\"%d=%v\\n\", n, f()) } }\n", 0o600)
	all, _, err := (&tally{out: t.Output()}).search(t.Context(), dir, []string{gremlinsThat(t, found)}, ".")
	if err != nil || len(all) != len(rows)+unsaid {
		t.Fatal(len(all), err)
	}
	p, err := newTrial(t.Context(), dir, ".", nil, all, t.TempDir())
	if err != nil || p.schema == nil {
		t.Fatal(err)
	}
	for i, o := range all[:unsaid] {
		if (p.schema.number[o] > 0) != (i == 0) || p.schema.dead[o] != (i == unsaid-1) {
			t.Errorf("%s: number %d, dead %v", o, p.schema.number[o], p.schema.dead[o])
		}
	}
	for i, o := range all[unsaid:] {
		n := p.schema.number[o]
		for _, c := range []struct {
			number int
			want   string
		}{{0, rows[i].asleep}, {n, rows[i].changed}} {
			out, err := p.binaries[0].run(t.Context(), c.number, "", time.Minute, "TestAll")
			if want := fmt.Sprintf("%d=%s\n", i, c.want); n == 0 || err != nil || !strings.Contains("\n"+out, "\n"+want) {
				t.Errorf("%s: number %d of %d, %v, want %s%s", rows[i].code, c.number, n, err, want, out)
			}
		}
		if b := p.binaries[0]; len(b.left) > 0 || len(b.probes) != 1 || b.probes[0].seen[base(n)] != 1 {
			t.Errorf("%s is not seen to be reached", o)
		}
	}
}

// What a schema says is what the changes say by themselves: some are killed, by their result, by
// an endless loop or by all the memory they take; some live; and what the schema cannot say, or
// only tests notice that it disturbs, is found by the compiler.
func TestSchemasFindWhatLives(t *testing.T) {
	plain, found := marked("m.go", `package m

const size = 4 @ARITHMETIC_BASE@* 2

func Max(a, b int) int {
	if a @CONDITIONALS_BOUNDARY@> b {
		return a
	}
	return b
}

func Min(a, b int) int {
	if a @CONDITIONALS_NEGATION@< b {
		return a
	}
	return b
}

func Sum(n int) (s uint) {
	for i := 0; i != n; i@INCREMENT_DECREMENT@++ {
		s += uint(i)
	}
	return s
}

func List(n int) (s []int) {
	for i := 0; i < n; i@INCREMENT_DECREMENT@++ {
		s = append(s, make([]int, 1<<20)...)
	}
	return s
}

func Count(m map[int]int, n int) {
	for ; n > 0; m[n]@INCREMENT_DECREMENT@++ {
		n--
	}
}

func Twice(n int) int { return n @ARITHMETIC_BASE@* 2 }

func Flaky(n int) int { return n @ARITHMETIC_BASE@- 2 }

func Bare(n int) int { return n @ARITHMETIC_BASE@- 3 }
`)
	dir := t.TempDir()
	marker := filepath.Join(t.TempDir(), "failed")
	write(t, filepath.Join(dir, "go.mod"), "module m\n\ngo 1.26\n", 0o600)
	write(t, filepath.Join(dir, "m.go"), plain, 0o600)
	write(t, filepath.Join(dir, "m_test.go"), `package m

import (
	"os"
	"testing"
)

func want(t *testing.T, ok bool) {
	if !ok {
		t.Fatal()
	}
}

func TestSize(t *testing.T) { want(t, size == 8) }
func TestMax(t *testing.T)  { want(t, Max(1, 2) == 2 && Max(2, 1) == 2 && Max(2, 2) == 2) }
func TestMin(t *testing.T)  { want(t, Min(1, 2) == 1) }
func TestSum(t *testing.T)  { want(t, Sum(3) == 3) }
func TestList(t *testing.T) { want(t, len(List(3)) == 3<<20) }

func TestCount(t *testing.T) {
	m := map[int]int{}
	Count(m, 3)
	want(t, m[2] == 1)
}

func TestTwice(t *testing.T) {
	_, schema := os.LookupEnv("MUTATE_NUMBER")
	want(t, !schema && Twice(4) == 8)
}

func TestFlaky(t *testing.T) {
	if Flaky(4) != 2 {
		os.WriteFile(os.Getenv("FAILED"), nil, 0o600)
	}
	_, schema := os.LookupEnv("MUTATE_NUMBER")
	_, err := os.Stat(os.Getenv("FAILED"))
	want(t, !schema || err != nil)
}
`, 0o600)
	t.Setenv("FAILED", marker)
	found = strings.Replace(found, "   RUNNABLE", "NOT COVERED", 1) // no line of a constant is run
	bare := strings.LastIndex(found, "   RUNNABLE ")
	found = found[:bare] + strings.Replace(found[bare:], "   RUNNABLE", "NOT COVERED", 1)
	var out, stderr strings.Builder
	code := run([]string{"-root", dir, "-gremlins", gremlinsThat(t, found), "-jobs", "2", "-untested", "."}, &out, &stderr)
	for _, w := range []string{
		"SURVIVED  m.go:6:7 CONDITIONALS_BOUNDARY | if a > b {\n",
		"left out  .: fail where changes are only asleep: TestTwice\n",
		"untested  m.go:43:33 INVERT_NEGATIVES | func Bare(n int) int { return n - 3 }\n",
		"of 8 changes 6 killed, 1 survived, 0 explained, 0 do not build, 1 not reached; 0 known from before; on lines that no test runs 1; ",
	} {
		if !strings.Contains(out.String(), w) {
			t.Errorf("not said: %s", w)
		}
	}
	if code != 1 || t.Failed() {
		t.Errorf("exit %d\n%s%s", code, out.String(), stderr.String())
	}
}

// A change that the tests of its package miss may be killed by those of another.
func TestTestsOfOthersAreHeldAgainstAChange(t *testing.T) {
	dir := t.TempDir()
	plain, found := marked("m.go", "package m\n\nfunc Half(n int) int { return n @ARITHMETIC_BASE@/ 2 }\n")
	write(t, filepath.Join(dir, "go.mod"), "module m\n\ngo 1.26\n", 0o600)
	write(t, filepath.Join(dir, "m.go"), plain, 0o600)
	write(t, filepath.Join(dir, "m_test.go"), "package m\n\nimport \"testing\"\n\nfunc TestHalf(*testing.T) { Half(4) }\n", 0o600)
	if err := os.Mkdir(filepath.Join(dir, "other"), 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "other", "o_test.go"), "package other\n\nimport (\n\t\"m\"\n\t\"testing\"\n)\n\nfunc TestHalf(t *testing.T) {\n\tif m.Half(4) != 2 {\n\t\tt.Fatal()\n\t}\n}\n", 0o600)
	for name, want := range map[string]string{".": "of 1 changes 0 killed, 1 survived", ".+./other": "of 1 changes 1 killed, 0 survived"} {
		var out, stderr strings.Builder
		run([]string{"-root", dir, "-gremlins", gremlinsThat(t, found), name}, &out, &stderr)
		if !strings.Contains(out.String(), want) {
			t.Errorf("%s: want %s\n%s%s", name, want, out.String(), stderr.String())
		}
	}
}
