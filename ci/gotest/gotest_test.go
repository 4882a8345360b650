package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestPackagesWithClocksAreToldByTheirCode(t *testing.T) {
	for _, test := range []struct {
		code string
		want bool
	}{
		{`import "time"; const d = 3 * time.Second`, false},
		{`import "time"; var at = time.Now()`, true},
		{`import "time"; func f() { g := time.Sleep; g(1) }`, true},
		{`import clock "time"; var at = clock.Now()`, true},
		{`import . "time"; var at = Now()`, true},
		{`import "context"; func f(ctx context.Context) error { return ctx.Err() }`, false},
		{`import "context"; func f(ctx context.Context) { context.WithTimeout(ctx, 1) }`, true},
		{`import "net"`, true},
		{`import "net/netip"`, false},
		{`import "golang.org/x/sys/unix"`, true},
		{`import "C"`, true},
		{`import "google.golang.org/grpc/codes"`, true},
		{`import "strings"; var s = strings.Repeat("time.Now()", 2)`, false},
	} {
		f, err := parser.ParseFile(token.NewFileSet(), "x.go", "package x; "+test.code, 0)
		if err != nil {
			t.Fatal(err)
		}
		if got := looksAtClock(f); got != test.want {
			t.Errorf("%s: clocks %v, want %v", test.code, got, test.want)
		}
	}
}

// The rule follows imports: a package whose own files are innocent runs alone when what
// it imports, or its tests, read a clock.
func TestClocksOfImportsCount(t *testing.T) {
	packs, _, err := list("../..")
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{"softstack/mpa": false, "softstack/ddp": false, "transports/tcp": true, "transports/memdev": true, "sched": true, "cmd/rdmaperf": true} {
		i := slices.IndexFunc(packs, func(p pack) bool { return short(p.Path) == name })
		if i < 0 || packs[i].Clocks != want {
			t.Errorf("%s: place %d, want one with clocks %v", name, i, want)
		}
	}
	for name, want := range map[string]bool{"softstack/mpa": false, "transports/lite/wire": false, "softstack/iwarp": true, "cmd/rdmaperf": true, "cmd/rdmaperf/internal/engine": true, "cmd/rdmaperf/internal/drive": true} {
		i := slices.IndexFunc(packs, func(p pack) bool { return short(p.Path) == name })
		if i < 0 || packs[i].Long != want {
			t.Errorf("%s: place %d, want one that begins early %v", name, i, want)
		}
	}
}

const events = `{"Action":"start","Package":"p"}
{"Action":"run","Test":"TestA"}
{"Action":"run","Test":"TestA/one"}
{"Action":"run","Test":"TestA/one/deep"}
{"Action":"pass","Test":"TestA/one/deep"}
{"Action":"pass","Test":"TestA/one"}
{"Action":"run","Test":"TestA/two"}
{"Action":"output","Test":"TestA/two","Output":"    x_test.go:3: first\n"}
{"Action":"output","Test":"TestA/two","Output":"    y_test.go:31: no device:\n"}
{"Action":"output","Test":"TestA/two","Output":"        set X\n"}
{"Action":"output","Test":"TestA/two","Output":"    --- SKIP: TestA/two (0.00s)\n"}
{"Action":"skip","Test":"TestA/two"}
{"Action":"pass","Test":"TestA"}
{"Action":"run","Test":"TestB"}
{"Action":"run","Test":"TestB/sub"}
{"Action":"fail","Test":"TestB/sub"}
{"Action":"fail","Test":"TestB"}
{"Action":"run","Test":"TestC"}
{"Action":"run","Test":"TestC/sub"}
{"Action":"pass","Test":"TestC/sub"}
{"Action":"fail","Test":"TestC"}
{"Action":"run","Test":"TestD"}
{"Action":"output","Output":"panic: made up\n"}
{"Action":"fail"}
`

// Subtests count and not their parents, but for a parent that failed by itself; a test
// that never ended failed.
func TestEventsAreCounted(t *testing.T) {
	all, err := read("p", strings.NewReader(events))
	if err != nil {
		t.Fatal(err)
	}
	pass, fail, skip, bad := count(all)
	if pass != 2 || fail != 3 || skip != 1 {
		t.Errorf("%d passed, %d failed, %d skipped, want 2, 3 and 1", pass, fail, skip)
	}
	var names []string
	for _, r := range bad {
		names = append(names, r.Test)
	}
	if want := []string{"TestB/sub", "TestC", "TestD"}; !slices.Equal(names, want) {
		t.Errorf("failed: %q, want %q", names, want)
	}
	for _, r := range all {
		if want := "no device: set X"; r.Verdict == skipped && r.Reason != want {
			t.Errorf("skipped: %q, want %q", r.Reason, want)
		}
	}
	dead, err := read("p", strings.NewReader("{\"Action\":\"start\"}\n{\"Action\":\"output\",\"Output\":\"panic in init\"}\n{\"Action\":\"fail\"}\n"))
	if _, fail, _, _ := count(dead); err != nil || fail != 1 {
		t.Errorf("a package that fails without a test: %d failed, error %v, want 1", fail, err)
	}
	if _, err := read("p", strings.NewReader("panic")); err == nil {
		t.Error("what is no event is not refused")
	}
}

// files makes a tree of files, each by its name.
func files(t *testing.T, tree map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, text := range tree {
		name = filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

// What a test binary is made of decides whether it is linked again: a dependency however deep,
// its own tests, how it is linked, and no other package.
func TestBinariesGoByWhatIsInThem(t *testing.T) {
	list := func(ids ...any) string {
		return fmt.Sprintf(`{"ImportPath":"deep","BuildID":"a/%v"}{"ImportPath":"near","BuildID":"b/%v","Deps":["deep"]}
{"ImportPath":"near [near.test]","BuildID":"c/%v"}{"ImportPath":"near.test","BuildID":"d/%v","Deps":["near [near.test]","deep","unsafe"]}
{"ImportPath":"far","BuildID":"e/%v"}{"ImportPath":"far.test","BuildID":"f/9","Deps":["far"]}`, ids...)
	}
	first, err := keysOf(list(1, 1, 1, 1, 1), "how")
	if err != nil || len(first) != 2 || first["near"] == "" || first["near"] == first["far"] {
		t.Fatalf("keys %v, error %v", first, err)
	}
	for _, c := range []struct {
		list, how string
		same      bool
	}{
		{list(1, 2, 1, 1, 2), "how", true},
		{list(2, 1, 1, 1, 1), "how", false},
		{list(1, 1, 2, 1, 1), "how", false},
		{list(1, 1, 1, 2, 1), "how", false},
		{list(1, 1, 1, 1, 1), "else", false},
	} {
		if keys, err := keysOf(c.list, c.how); err != nil || (keys["near"] == first["near"]) != c.same {
			t.Errorf("%s, %s: error %v, the same binary %v, want %v", c.list, c.how, err, !c.same, c.same)
		}
	}
	if keys, err := keysOf(list(1, 1, 1, 1, ""), "how"); err == nil {
		t.Errorf("without the build ID of a dependency: %v", keys)
	}
}

// What nobody asked for longest goes first, and what may be running never.
func TestStoreKeepsWhatIsUsed(t *testing.T) {
	s := store{dir: t.TempDir(), limit: 25}
	for i, name := range []string{"new", "young", "old", "oldest"} {
		if err := os.WriteFile(s.file(name), make([]byte, 10), 0o755); err != nil {
			t.Fatal(err)
		}
		at := time.Now().Add(-inUse * time.Duration(i))
		if err := os.Chtimes(s.file(name), at, at); err != nil {
			t.Fatal(err)
		}
	}
	if s.use("absent") || !s.use("oldest") {
		t.Error("what is there is not told from what is not")
	}
	s.prune()
	left, _ := filepath.Glob(s.file("*"))
	for i := range left {
		left[i] = filepath.Base(left[i])
	}
	if want := []string{"new.test", "oldest.test"}; !slices.Equal(left, want) {
		t.Errorf("left: %q, want %q", left, want)
	}
	s.limit = 1
	if s.prune(); !s.use("new") {
		t.Error("a binary in use is gone")
	}
}

// many is a package with clocks and so many tests, of which none is run by two processes.
func many(n int) string {
	text := "package f\nimport (\"testing\"; \"time\")\nvar _ = time.Now()\nfunc BenchmarkIt(*testing.B) {}\n"
	for i := range n {
		text += fmt.Sprintf("func TestOf%d(t *testing.T) {}\n", i)
	}
	return text
}

// A whole run of a small module: two packages of one name, a skip, a failure, a panic.
func TestASmallModuleIsBuiltRunAndReported(t *testing.T) {
	root := files(t, map[string]string{
		"go.mod":            "module small\n\ngo 1.25\n",
		"a/x/x_test.go":     "package x\nimport \"testing\"\nfunc TestOne(t *testing.T) {}\nfunc TestNo(t *testing.T) { t.Skip(\"no fish\") }\nfunc FuzzIt(f *testing.F) { f.Add(1); f.Fuzz(func(*testing.T, int) {}) }\n",
		"b/x/x_test.go":     "package x\nimport (\"testing\"; \"os\")\nfunc TestHere(t *testing.T) { if _, err := os.Stat(\"x_test.go\"); err != nil { t.Error(err) } }\n",
		"c/clock_test.go":   "package c\nimport (\"testing\"; \"time\")\nfunc TestClock(t *testing.T) { t.Log(\"a word\"); if time.Now().IsZero() { return }; t.Fatal(\"made up\") }\n",
		"d/clock_test.go":   "package d\nimport (\"testing\"; \"time\")\nfunc TestPanics(t *testing.T) { time.Sleep(1); go func() { panic(\"in a goroutine\") }(); select {} }\n",
		"e/nothing_here.go": "package e\n",
		"f/many_test.go":    many(partOf),
	})
	k := kind{root: root, dir: t.TempDir(), cache: t.TempDir(), fresh: true}
	if err := k.build(t.Context()); err != nil {
		t.Fatal(err)
	}
	linked, _ := filepath.Glob(filepath.Join(k.cache, "*"))
	if err := k.build(t.Context()); err != nil {
		t.Fatal(err)
	}
	if again, _ := filepath.Glob(filepath.Join(k.cache, "*")); len(linked) != 5 || !slices.Equal(again, linked) {
		t.Errorf("linked %q, and in a second build %q", linked, again)
	}
	var out bytes.Buffer
	if err := k.run(t.Context(), false, &out); err != nil {
		t.Fatalf("%v\n%s", err, &out)
	}
	if err := k.run(t.Context(), true, &out); err == nil || !strings.Contains(out.String(), "made up") || !strings.Contains(out.String(), "in a goroutine") {
		t.Errorf("error %v, output\n%s\nwant what the two said that failed", err, &out)
	}
	for _, want := range []string{"f (1 of 2) ", "f (2 of 2) "} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q did not run in\n%s", want, &out)
		}
	}
	out.Reset()
	err := report(k.dir, &out)
	text := out.String()
	if err == nil || !strings.HasSuffix(text, fmt.Sprintf("\n%d passed, 2 failed, 1 skipped\n", 3+partOf)) || !strings.HasPrefix(text, "skipped: no fish\n  small/a/x (1): TestNo\n") {
		t.Errorf("error %v, report\n%s", err, text)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := k.run(ctx, true, &out); err == nil {
		t.Error("a run that was interrupted is a success")
	}
}

func TestTheReportNamesWhatRanOnceOnly(t *testing.T) {
	dir := t.TempDir()
	line := func(test string, v verdict) string {
		return `{"Package":"` + module + `/p","Test":"` + test + `","Verdict":"` + string(v) + `"}` + "\n"
	}
	plain, race := kind{dir: dir}, kind{dir: dir, race: true}
	save := func(k kind, text string) {
		if err := os.WriteFile(k.results(), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	var out bytes.Buffer
	save(plain, line("TestA", passed)+line("TestFastAllocatesNothing", passed)+line("TestB", skipped))
	save(race, line("TestA", passed)+line("TestB", passed))
	if err := report(dir, &out); err != nil || !strings.HasSuffix(out.String(), "only: 1 tests of allocations and in a browser ("+notUnderRace+")\n3 passed, 0 failed, 0 skipped\n") {
		t.Errorf("error %v, report\n%s", err, &out)
	}
	out.Reset()
	save(race, line("TestA", failed))
	if err := report(dir, &out); err == nil || !strings.Contains(out.String(), "LOST: p TestB did not") || !strings.HasSuffix(out.String(), "\n1 passed, 2 failed, 1 skipped\n") {
		t.Errorf("error %v, report\n%s", err, &out)
	}
	out.Reset()
	slow := func(test string, seconds string) string {
		return strings.Replace(line(test, passed), "}", `,"Seconds":`+seconds+"}", 1)
	}
	save(plain, slow("TestA", "0.4")+slow("TestB", "2")+slow("TestC", "0.2")+slow("TestC/sub", "9"))
	save(race, slow("TestA", "3")+slow("TestB", "0.5")+slow("TestC", "0.2"))
	want := "slowest tests, in seconds (plain, race):\n    0.4     3.0  p TestA\n    2.0     0.5  p TestB\n4 passed"
	if err := report(dir, &out); err != nil || !strings.Contains(out.String(), want) {
		t.Errorf("error %v, report\n%s", err, &out)
	}
	save(plain, "")
	save(race, "")
	if err := report(dir, &out); err == nil {
		t.Error("no test at all is a success")
	}
}

func TestWrongCommandLines(t *testing.T) {
	for _, line := range []string{"", "build", "run -race -rest x", "run a b", "report", "dance x", "build -bogus x"} {
		if err := command(t.Context(), strings.Fields(line)); !errors.Is(err, errUsage) {
			t.Errorf("%q: %v, want the usage", line, err)
		}
	}
}

// The race detector's run leaves tests out by their names, so a test that counts
// allocations must have such a name. A function that is no test may count for one.
func TestTestsOfAllocationsSaySoInTheirNames(t *testing.T) {
	meant := regexp.MustCompile(notUnderRace)
	found := 0
	err := filepath.WalkDir("../..", func(name string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(name, "_test.go") {
			return err
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		for _, d := range f.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || !strings.HasPrefix(fn.Name.Name, "Test") {
				continue
			}
			counts := false
			ast.Inspect(fn, func(n ast.Node) bool {
				s, ok := n.(*ast.SelectorExpr)
				counts = counts || ok && s.Sel.Name == "AllocsPerRun"
				return !counts
			})
			if counts {
				found++
			}
			if counts && !meant.MatchString(fn.Name.Name) {
				t.Errorf("%s: %s counts allocations, and its name does not end in %s", name, fn.Name.Name, notUnderRace)
			}
		}
		return nil
	})
	if err != nil || found < 10 {
		t.Errorf("%d tests of allocations found, error %v", found, err)
	}
}
