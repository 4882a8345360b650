package main

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const leftOver = `package a
import "testing"
func TestPasses(t *testing.T) { t.Run("sub", func(*testing.T) {}) }
func TestWriteAllocatesNothing(t *testing.T) {}
func TestPart(t *testing.T) {
	t.Run("here", func(*testing.T) {})
	t.Run("not (there)", func(t *testing.T) { t.Skip("no fish") })
}
func TestSlow(t *testing.T) {
	t.Run("here", func(*testing.T) {})
	t.Run("there", func(t *testing.T) { t.Skip("too slow under the race detector") })
}
func TestSessions(t *testing.T) {
	t.Run("post_and_poll_allocate_nothing", func(*testing.T) {})
	t.Run("others", func(*testing.T) {})
}
func TestMain(m *testing.M) { m.Run() }
func Testing(t *testing.T) {}
func ExampleCompiled() {}
func ExampleRun() {
	// Output:
}
`

// What runs without the race detector is what the run under it left out, skipped, did not
// have or tries less often: no test is lost, and none of the others runs twice.
func TestTheRestIsWhatTheRaceDetectorLeft(t *testing.T) {
	root := files(t, map[string]string{
		"go.mod":         "module small\n\ngo 1.25\n",
		"a/a_test.go":    leftOver,
		"b/b_test.go":    "package b\nimport \"testing\"\nfunc TestAll(t *testing.T) {}\n",
		"c/c_test.go":    "package c\nimport (\"testing\"; \"time\")\nvar _ = time.Now()\nfunc TestClock(t *testing.T) {}\n",
		"c/fast_test.go": "//go:build !race\n\npackage c\nimport \"testing\"\nfunc TestFast(t *testing.T) {}\n",
	})
	dir, cache := t.TempDir(), t.TempDir()
	race := kind{root: root, dir: dir, cache: cache, race: true, fresh: true}
	rest := kind{root: root, dir: dir, cache: cache, rest: true, fresh: true}
	if err := rest.build(t.Context()); err == nil {
		t.Error("what is left over is known before anything ran")
	}
	if err := race.build(t.Context()); err != nil {
		t.Skipf("no race detector: %v", err)
	}
	var out bytes.Buffer
	for _, clocks := range []bool{false, true} {
		if err := race.run(t.Context(), clocks, &out); err != nil {
			t.Fatalf("%v\n%s", err, &out)
		}
	}
	if err := rest.build(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := rest.run(t.Context(), false, &out); err != nil {
		t.Fatalf("%v\n%s", err, &out)
	}
	results, err := load(rest.results())
	if err != nil {
		t.Fatal(err)
	}
	var ran []string
	for _, r := range results {
		if r.Test != "" && !r.Parent {
			ran = append(ran, short(r.Package)+" "+r.Test)
		}
	}
	slices.Sort(ran)
	want := []string{"small/a TestSessions/post_and_poll_allocate_nothing", "small/a TestSlow/here", "small/a TestSlow/there", "small/a TestWriteAllocatesNothing", "small/c TestFast"}
	if !slices.Equal(ran, want) {
		t.Errorf("left over: %q, want %q", ran, want)
	}
	out.Reset()
	if err := report(dir, &out); err != nil || !strings.Contains(out.String(), "without the race detector: 4 tests that") || !strings.HasSuffix(out.String(), "\n10 passed, 0 failed, 2 skipped\n") {
		t.Errorf("error %v, report\n%s", err, &out)
	}
	// A test of no result is lost, and says so.
	text, err := os.ReadFile(rest.results())
	if err != nil {
		t.Fatal(err)
	}
	kept := slices.DeleteFunc(strings.SplitAfter(string(text), "\n"), func(l string) bool { return strings.Contains(l, "TestFast") })
	if err := os.WriteFile(rest.results(), []byte(strings.Join(kept, "")), 0o644); err != nil {
		t.Fatal(err)
	}
	out.Reset()
	if err := report(dir, &out); err == nil || !strings.Contains(out.String(), "LOST: small/c TestFast did not run") {
		t.Errorf("error %v, report\n%s", err, &out)
	}
}

// Tests of properties are tried on fewer values under the race detector, so they run again.
func TestTestsOfPropertiesRunInBothWays(t *testing.T) {
	dir := t.TempDir()
	text := "package p\nimport (\"testing\"; \"pgregory.net/rapid\")\nfunc TestHolds(t *testing.T) { rapid.Check(t, nil) }\n"
	if err := os.WriteFile(filepath.Join(dir, "p_test.go"), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	all, wide, err := testsIn(dir, []string{"p_test.go"})
	if err != nil || !slices.Equal(all, []string{"TestHolds"}) || !slices.Equal(wide, all) {
		t.Fatalf("tests %q, of properties %q, error %v", all, wide, err)
	}
	race := kind{dir: dir, race: true}
	line := `{"Package":"p","Test":"TestHolds","Verdict":"pass"}` + "\n"
	if err := os.WriteFile(race.results(), []byte(line), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, wide := range [][]string{all, nil} {
		rest, err := left([]pack{{Path: "p", Tests: all, Wide: wide}}, race)
		if err != nil || len(rest) != len(wide) {
			t.Errorf("of properties %q: %d packages are left, error %v", wide, len(rest), err)
		}
	}
}
