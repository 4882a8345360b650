package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// says is a test that writes its name to a file outside the tree, and does something.
func says(pkg, imports, does string) string {
	return fmt.Sprintf(`package %s
import ("os"; "testing"; %s)
func TestIt(t *testing.T) {
	f, err := os.OpenFile(os.Getenv("GOTEST_RAN"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil { t.Fatal(err) }
	f.WriteString("%s ")
	f.Close()
	%s
}
`, pkg, imports, pkg, does)
}

// What passed runs again only when something changed that it depends on: a file of the tree
// that it read, a variable, its code; with programs any file. What failed always does,
// and so does what passed too long ago.
func TestWhatIsUnchangedRunsOnce(t *testing.T) {
	root := files(t, map[string]string{
		"go.mod":            "module small\n\ngo 1.25\n",
		"calm/x_test.go":    says("calm", "", ""),
		"reader/x_test.go":  says("reader", "", `os.ReadFile("../data/text"); os.Getenv("GOTEST_WORD")`),
		"lister/x_test.go":  says("lister", "", `os.ReadDir("../data"); os.Getwd()`),
		"starter/x_test.go": says("starter", `"os/exec"`, `exec.Command("true").Run()`),
		"broken/x_test.go":  says("broken", "", `t.Error("made up")`),
		"data/text":         "one",
	})
	if out, err := exec.Command("git", "init", "-q", root).CombinedOutput(); err != nil {
		t.Fatalf("git init: %v, %s", err, out)
	}
	ran := filepath.Join(t.TempDir(), "ran")
	t.Setenv("GOTEST_RAN", ran)
	k := kind{root: root, dir: t.TempDir(), cache: t.TempDir()}
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, step := range []struct {
		what   string
		before func()
		want   string
	}{
		{"first", func() {}, "broken calm lister reader starter"},
		{"nothing changed", func() {}, "broken"},
		{"another clone", func() { t.Setenv("PWD", "/elsewhere") }, "broken"},
		{"a file's content", func() { write("data/text", "two") }, "broken reader starter"},
		{"a file that nobody read", func() { write("README", "three") }, "broken starter"},
		{"a name in a directory", func() { write("data/more", "four") }, "broken lister starter"},
		{"a variable", func() { t.Setenv("GOTEST_WORD", "five") }, "broken reader"},
		{"code", func() { write("calm/y_test.go", "package calm\nvar _ = 6\n") }, "broken calm starter"},
		{"asked for", func() { k.fresh = true }, "broken calm lister reader starter"},
		{"asked for, and kept nothing", func() { k.fresh = false; os.RemoveAll(k.cache) }, "broken calm lister reader starter"},
		{"a day later", func() { older(t, k.cache) }, "broken calm lister reader starter"},
		{"nothing changed since", func() {}, "broken"},
	} {
		step.before()
		if err := os.WriteFile(ran, nil, 0o644); err != nil {
			t.Fatal(err)
		}
		os.Remove(k.results())
		if _, err := os.Stat(k.cache); err != nil || step.what == "first" || step.what == "code" { // binaries, too, are gone, or old
			if err := k.build(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		var out bytes.Buffer
		if err := k.run(t.Context(), false, &out); err == nil {
			t.Errorf("%s: a failure is a success\n%s", step.what, &out)
		}
		text, _ := os.ReadFile(ran)
		got := strings.Fields(string(text))
		slices.Sort(got)
		if strings.Join(got, " ") != step.want {
			t.Errorf("%s: ran %s, want %s\n%s", step.what, got, step.want, &out)
		}
		// Kept or not, every test is counted.
		out.Reset()
		err := report(k.dir, &out)
		if !strings.HasSuffix(out.String(), "\n4 passed, 1 failed, 0 skipped\n") || err == nil {
			t.Errorf("%s: error %v, report\n%s", step.what, err, &out)
		}
		if want := fmt.Sprintf("changed since they passed: %d of 5,", 5-len(got)); strings.Contains(out.String(), want) != (len(got) < 5) {
			t.Errorf("%s: want %q in\n%s", step.what, want, &out)
		}
	}
}

// older makes all results a day older.
func older(t *testing.T, dir string) {
	t.Helper()
	names, _ := filepath.Glob(filepath.Join(dir, "*.results"))
	today, yesterday := `"At":"`+time.Now().Format(time.DateOnly), `"At":"`+time.Now().Add(-keptFor).Format(time.DateOnly)
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil || os.WriteFile(name, bytes.Replace(text, []byte(today), []byte(yesterday), 1), 0o644) != nil {
			t.Fatal(err)
		}
	}
	if len(names) == 0 {
		t.Fatal("no results")
	}
}
