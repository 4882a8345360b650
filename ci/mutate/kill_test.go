package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// once is a module whose test fails once when the code is changed, and one that fails once in any
// case: MARKED names the files by which they know.
func once(t *testing.T) (dir, marked string) {
	t.Helper()
	dir = t.TempDir()
	marked = filepath.Join(dir, "marked")
	t.Setenv("MARKED", marked)
	write(t, filepath.Join(dir, "go.mod"), "module m\n\ngo 1.26\n", 0o600)
	write(t, filepath.Join(dir, "m.go"), "package m\n\nfunc Less(n int) int { return n - 2 }\n", 0o600)
	write(t, filepath.Join(dir, "m_test.go"), `package m

import (
	"os"
	"testing"
)

func first(name string) bool {
	_, err := os.Stat(os.Getenv("MARKED") + name)
	os.WriteFile(os.Getenv("MARKED")+name, nil, 0o600)
	return err != nil
}

func TestLess(t *testing.T) {
	if Less(4) != 2 && first("less") {
		t.Fatal()
	}
}

func TestAnyCase(t *testing.T) {
	if os.Getenv("ANY_CASE") == "always" || os.Getenv("ANY_CASE") == "once" && first("any") {
		t.Fatal()
	}
}
`, 0o600)
	return dir, marked
}

// A change that a test noticed by chance survived it, whether it was tried with others or by itself.
func TestAKillIsRepeated(t *testing.T) {
	dir, marked := once(t)
	var out, err strings.Builder
	fake := write(t, filepath.Join(dir, "gremlins"), "#!/bin/sh\necho 'RUNNABLE ARITHMETIC_BASE at m.go:3:33'\n", 0o700)
	if code := run([]string{"-root", dir, "-gremlins", fake, "."}, &out, &err); code != 1 || !strings.HasPrefix(out.String(), "SURVIVED  m.go:3:33") {
		t.Errorf("exit %d\n%s%s", code, out.String(), err.String())
	}
	if _, err := os.Stat(marked + "less"); err != nil {
		t.Errorf("nothing failed: %v", err)
	}
	for _, c := range []struct {
		was  string
		want verdict
	}{{"", survived}, {"always", killed}} {
		os.Remove(marked + "less")
		t.Setenv("MARKED", marked+c.was)
		if c.was != "" {
			t.Setenv("MARKED", filepath.Join(dir, "no such folder", "marked"))
		}
		if v := held(t.Context(), dir, "m.go", "package m\n\nfunc Less(n int) int { return n + 2 }\n", time.Minute, "."); v != c.want {
			t.Errorf("a test that notices it once or always (%q): %s, want %s", c.was, verdictNames[v], verdictNames[c.want])
		}
	}
}

// Tests that fail once without a change are run again; which one fails twice is told.
func TestAGoodTestMayFailOnce(t *testing.T) {
	dir, _ := once(t)
	for how, want := range map[string]string{"never": "", "once": "", "always": "TestAnyCase"} {
		t.Setenv("ANY_CASE", how)
		k, err := timeTests(t.Context(), dir, []string{"."})
		if (err != nil) != (want != "") || err != nil && !strings.HasSuffix(err.Error(), ": "+want) || err == nil && (k.all <= 0 || k.quick <= 0) {
			t.Errorf("%s: %v, %+v", how, err, k)
		}
	}
}
