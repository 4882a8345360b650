package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

func write(t *testing.T, name, text string, mode os.FileMode) string {
	t.Helper()
	if err := os.WriteFile(name, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
	return name
}

// module is a module of one function, whose test looks at one of its two lines.
func module(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "go.mod"), "module m\n\ngo 1.26\n", 0o600)
	write(t, filepath.Join(dir, "m.go"), "package m\n\nfunc Half(n int) int { return n / 2 }\n\nfunc Twice(n int) int { return n * 2 }\n", 0o600)
	write(t, filepath.Join(dir, "m_test.go"), "package m\n\nimport \"testing\"\n\nfunc TestHalf(t *testing.T) {\n\tif Half(4) != 2 {\n\t\tt.Fatal()\n\t}\n}\n", 0o600)
	return dir
}

const listed = `# of the module
[half]
file m.go
old n / 2
new n / 1
test .

[twice]
file m.go
old n * 2
new n * 3
test .

[gone]
file m.go
old n - 2
new n
test .

[no code]
file m.go
old n / 2
new n /
test .

[nothing tested]
file m.go
old n / 2
new n / 3
test . -run NoSuchTest
`

// What a test notices is killed, what none notices survives, and what does not fit the tree or
// does not build says nothing of the tests.
func TestListedChanges(t *testing.T) {
	dir := module(t)
	list := write(t, filepath.Join(dir, "list"), listed, 0o600)
	var out, err bytes.Buffer
	if code := run([]string{"-root", dir, "-list", list}, &out, &err); code != 1 || err.Len() > 0 {
		t.Errorf("exit %d, %s", code, err.String())
	}
	want := "killed    half\nSURVIVED  twice\nSTALE     gone\nSTALE     no code\nSTALE     nothing tested\nkilled 1, survived 1, explained 0, stale 3, not reached 0\n"
	if out.String() != want {
		t.Errorf("printed\n%swant\n%s", out.String(), want)
	}
	out.Reset()
	if code := run([]string{"-root", dir, "-list", list, "-only", "^half$"}, &out, &err); code != 0 || !strings.HasPrefix(out.String(), "killed    half\nkilled 1,") {
		t.Errorf("exit %d, %s", code, out.String())
	}
	if b, e := os.ReadFile(filepath.Join(dir, "m.go")); e != nil || !strings.Contains(string(b), "n / 2") {
		t.Error("the tree was changed")
	}
}

// Tests that fail without a change say nothing of it.
func TestFailingTestsKillNothing(t *testing.T) {
	dir := module(t)
	write(t, filepath.Join(dir, "bad_test.go"), "package m\n\nimport \"testing\"\n\nfunc TestBad(t *testing.T) { t.Fatal() }\n", 0o600)
	list := write(t, filepath.Join(dir, "list"), listed, 0o600)
	var out, err bytes.Buffer
	if code := run([]string{"-root", dir, "-list", list, "-only", "^half$"}, &out, &err); code != 1 || !strings.HasPrefix(out.String(), "STALE     half: its tests fail without it\nkilled 0,") {
		t.Errorf("exit %d, %s", code, out.String())
	}
}

// Nothing begins when the time is over, and that is no error and no success of the tests.
func TestTheTimeIsALimit(t *testing.T) {
	dir := module(t)
	list := write(t, filepath.Join(dir, "list"), listed, 0o600)
	var out, err bytes.Buffer
	code := run([]string{"-root", dir, "-list", list, "-only", "half|twice", "-for", "1ns", "-gremlins", "false", "."}, &out, &err)
	if code != 0 || !strings.HasSuffix(out.String(), "killed 0, survived 0, explained 0, stale 0, not reached 3\n") {
		t.Errorf("exit %d\n%s%s", code, out.String(), err.String())
	}
}

// An interrupt is the end of the time: what runs is ended with it, and what was not reached counted.
func TestAnInterruptEndsWhatRuns(t *testing.T) {
	dir := module(t)
	begun := filepath.Join(dir, "begun")
	fake := write(t, filepath.Join(dir, "gremlins"), "#!/bin/sh\nsleep 30 >/dev/null 2>&1 &\necho $! > "+begun+".new && mv "+begun+".new "+begun+"\nwait\n", 0o700)
	pid := make(chan int, 1)
	go func() {
		defer close(pid)
		for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(time.Millisecond) {
			if b, err := os.ReadFile(begun); err == nil {
				n, _ := strconv.Atoi(strings.TrimSpace(string(b)))
				syscall.Kill(os.Getpid(), syscall.SIGTERM)
				pid <- n
				return
			}
		}
	}()
	var out, err bytes.Buffer
	code := run([]string{"-root", dir, "-gremlins", fake, "."}, &out, &err)
	n := <-pid
	for end := time.Now().Add(5 * time.Second); n > 0 && time.Now().Before(end); time.Sleep(time.Millisecond) {
		if b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", n)); err != nil || bytes.Contains(b, []byte(") Z ")) { // ended, and nobody's yet
			n = 0
		}
	}
	if n != 0 {
		t.Errorf("what was begun as %d goes on", n)
	}
	if code != 0 || !strings.HasPrefix(out.String(), "not begun .\n") {
		t.Errorf("exit %d\n%s%s", code, out.String(), err.String())
	}
}

// Survivors of gremlins are errors unless their line is explained, whatever its number.
func TestSurvivorsAreExplainedByTheirLine(t *testing.T) {
	dir := module(t)
	fake := write(t, filepath.Join(dir, "gremlins"), `#!/bin/sh
case "$*" in *" --dry-run --exclude-files ^[^/]+/ "*) ;; *) echo 'packages below are changed, too'; exit 1 ;; esac
echo '     RUNNABLE ARITHMETIC_BASE at m.go:3:33'
echo '     RUNNABLE ARITHMETIC_BASE at m.go:5:34'
`, 0o700)
	line := "func Twice(n int) int { return n * 2 }"
	for _, c := range []struct {
		explained string
		code      int
		want      string
	}{
		{"", 1, "SURVIVED  m.go:5:34 ARITHMETIC_BASE | " + line},
		{"m.go | ARITHMETIC_BASE | " + line + " | of no use\n", 0, "explained m.go:5:34"},
		{"m.go | * | " + line + " | of no use\n", 0, "explained m.go:5:34"},
		{"m.go | CONDITIONALS_NEGATION | " + line + " | another change\n", 1, "SURVIVED  m.go:5:34"},
		{"m.go | * | return n * 4 | the line is gone\n", 1, ""},
		{"m.go | * | " + line + "\n", 1, ""},
		{"m.go | * | " + line + " |  \n", 1, ""},
	} {
		var out, err bytes.Buffer
		explained := write(t, filepath.Join(dir, "explained"), c.explained, 0o600)
		code := run([]string{"-root", dir, "-explained", explained, "-gremlins", fake, "."}, &out, &err)
		if code != c.code || !strings.Contains(out.String(), c.want) || c.want == "" && err.Len() == 0 {
			t.Errorf("%q: exit %d\n%s%s", c.explained, code, out.String(), err.String())
		}
	}
}

// The change of a minus has two names, in whatever order they are found: either explains it.
func TestEitherNameExplainsAChange(t *testing.T) {
	for _, name := range []string{"ARITHMETIC_BASE", "INVERT_NEGATIVES", "CONDITIONALS_BOUNDARY"} {
		for _, found := range []string{"ARITHMETIC_BASE", "INVERT_NEGATIVES"} {
			l := &tally{out: io.Discard, why: []explanation{{"m.go", name, "n - 2", "of no use"}}}
			want := explained
			if name == "CONDITIONALS_BOUNDARY" {
				want = survived
			}
			if l.lived(operator{file: "m.go", kind: found, code: "n - 2", old: "-"}); l.n[want] != 1 {
				t.Errorf("%s found, %s explained: %v", found, name, l.n)
			}
		}
	}
}

// What a quick test does not notice a slow one may, a change by two names is tried once, one
// that does not build says nothing, and what an earlier run found is not tried again until the
// package changes.
func TestChangesAreTriedOnceAndByAllTests(t *testing.T) {
	dir := module(t)
	write(t, filepath.Join(dir, "n.go"), "package m\n\nfunc Less(n int) int { return n - 2 }\n\nfunc Join(a string) string { return a + \"b\" }\n", 0o600)
	slow := write(t, filepath.Join(dir, "n_test.go"), `package m

import (
	"os"
	"testing"
	"time"
)

func TestSlow(t *testing.T) {
	f, _ := os.OpenFile(os.Getenv("SLOW"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	f.WriteString("x")
	f.Close()
	time.Sleep(1100 * time.Millisecond)
	if Less(4) != 2 {
		t.Fatal()
	}
}
`, 0o600)
	ran := filepath.Join(dir, "ran")
	t.Setenv("SLOW", ran)
	fake := write(t, filepath.Join(dir, "gremlins"), `#!/bin/sh
echo 'RUNNABLE ARITHMETIC_BASE at m.go:3:33'
echo 'RUNNABLE ARITHMETIC_BASE at n.go:3:33'
echo 'RUNNABLE INVERT_NEGATIVES at n.go:3:33'
echo 'RUNNABLE ARITHMETIC_BASE at n.go:5:39'
`, 0o700)
	args := []string{"-root", dir, "-keep", filepath.Join(dir, "kept"), "-gremlins", fake, "."}
	times := func() int {
		b, _ := os.ReadFile(ran)
		return len(b)
	}
	found, err := os.ReadFile(fake)
	if err != nil {
		t.Fatal(err)
	}
	for i, c := range []struct {
		want string
		slow int // runs of the slow test so far
	}{
		{"all       .: of 3 changes 2 killed, 0 survived, 0 explained, 1 do not build, 0 not reached; 0 known from before;", 4},
		{"all       .: of 3 changes 2 killed, 0 survived, 0 explained, 1 do not build, 0 not reached; 3 known from before;", 4},
		{"all       .: of 3 changes 1 killed, 1 survived, 0 explained, 1 do not build, 0 not reached; 0 known from before;", 6},
		{"all       .: of 3 changes 1 killed, 1 survived, 0 explained, 1 do not build, 0 not reached; 3 known from before;", 6},
		{"all       .: of 3 changes 2 killed, 0 survived, 0 explained, 1 do not build, 0 not reached; 2 known from before;", 10},
	} {
		text, _ := os.ReadFile(slow)
		switch i {
		case 1: // the other name comes first
			all := strings.Split(string(found), "\n")
			all[2], all[3] = all[3], all[2]
			write(t, fake, strings.Join(all, "\n"), 0o700)
		case 2: // the code changes, and its test gets weaker
			write(t, filepath.Join(dir, "more.go"), "package m\n", 0o600)
			write(t, slow, strings.Replace(string(text), "Less(4) != 2", "Less(4) > 8", 1), 0o600)
		case 4: // and stronger again
			write(t, slow, strings.Replace(string(text), "Less(4) > 8", "Less(4) != 2", 1), 0o600)
		}
		var out, err bytes.Buffer
		run(args, &out, &err)
		if !strings.Contains(out.String(), c.want) || times() != c.slow {
			t.Errorf("run %d, the slow test ran %d times, want %d\n%swant %s%s", i, times(), c.slow, out.String(), c.want, err.String())
		}
	}
}

// A change that only a slow test notices waits until the quick tests met all others.
func TestQuickTestsMeetAllChangesFirst(t *testing.T) {
	dir := module(t)
	write(t, filepath.Join(dir, "m_test.go"), `package m

import (
	"os"
	"testing"
	"time"
)

func say(word string) {
	f, _ := os.OpenFile(os.Getenv("SAID"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	f.WriteString(word + " ")
	f.Close()
}

func TestHalf(t *testing.T) {
	if Half(4) != 2 {
		say("quick")
		t.Fatal()
	}
}

func TestTwice(t *testing.T) {
	time.Sleep(1100 * time.Millisecond)
	if Twice(4) != 8 {
		say("slow")
		t.Fatal()
	}
}
`, 0o600)
	said := filepath.Join(dir, "said")
	t.Setenv("SAID", said)
	fake := write(t, filepath.Join(dir, "gremlins"), `#!/bin/sh
echo 'RUNNABLE ARITHMETIC_BASE at m.go:5:34'
echo 'RUNNABLE ARITHMETIC_BASE at m.go:3:33'
`, 0o700)
	var out, err bytes.Buffer
	code := run([]string{"-root", dir, "-gremlins", fake, "."}, &out, &err)
	if b, _ := os.ReadFile(said); code != 0 || string(b) != "quick quick slow slow " {
		t.Errorf("exit %d, failed in the order %q, want twice quick and then slow\n%s%s", code, b, out.String(), err.String())
	}
}

// Slow tests wait more than they work, so that more of them run at a time than there are CPUs:
// for gremlins, for the changes that sleep in one program, and for one by itself.
func TestEightTestsRunAtATime(t *testing.T) {
	dir := module(t)
	write(t, filepath.Join(dir, "m_test.go"), `package m

import (
	"flag"
	"testing"
)

func TestHalf(t *testing.T) {
	if n := flag.Lookup("test.parallel").Value.String(); n != "8" || Half(4) != 2 {
		t.Fatal(n)
	}
}

func TestTwice(t *testing.T) {
	if n := flag.Lookup("test.parallel").Value.String(); n != "8" {
		t.Fatal(n)
	}
	Twice(4)
}
`, 0o600)
	fake := write(t, filepath.Join(dir, "gremlins"), `#!/bin/sh
case $GOFLAGS in *-parallel=8*) ;; *) exit 1 ;; esac
echo 'RUNNABLE ARITHMETIC_BASE at m.go:3:33'
echo 'RUNNABLE ARITHMETIC_BASE at m.go:5:34'
`, 0o700)
	var out, err bytes.Buffer
	run([]string{"-root", dir, "-gremlins", fake, "."}, &out, &err)
	if want := "of 2 changes 1 killed, 1 survived"; !strings.Contains(out.String(), want) || strings.Contains(out.String(), "left out") {
		t.Errorf("want %s\n%s%s", want, out.String(), err.String())
	}
}

// Constants and variables of a package are outside of functions, and what a literal of a function
// or a body has is not.
func TestOnlyDeclarationsAreOutsideOfFunctions(t *testing.T) {
	dir := t.TempDir()
	text := "package m\n\nconst a = 1 + 2\n\nvar b, f = 1 - 2, func() int { return 1 * 2 }\n\nfunc g() int { return 4 / 2 }\n\nvar c = [9 % 2]int{}\n"
	write(t, filepath.Join(dir, "m.go"), text, 0o600)
	for sign, want := range map[string]bool{"+": true, "-": true, "*": false, "/": false, "%": true} {
		o := operator{file: "m.go", offset: strings.Index(text, sign)}
		if got := o.outside(dir); got != want {
			t.Errorf("%s is outside of functions: %v", sign, got)
		}
	}
}

// What hangs is given up after ten times what the tests take, and never after longer than a
// listed change is.
func TestWhatHangsIsGivenUp(t *testing.T) {
	for took, want := range map[time.Duration]time.Duration{0: 30 * time.Second, 5 * time.Second: 50 * time.Second, time.Hour: testLimit} {
		if got := limit(took); got != want {
			t.Errorf("tests that take %v have %v, want %v", took, got, want)
		}
	}
}

// A change of a minus is explained by one name, whichever of its two gremlins says first.
func TestAMinusHasOneName(t *testing.T) {
	dir := module(t)
	line := "func Twice(n int) int { return n - 2 }"
	write(t, filepath.Join(dir, "m.go"), "package m\n\nfunc Half(n int) int { return n / 2 }\n\n"+line+"\n", 0o600)
	explained := write(t, filepath.Join(dir, "explained"), "m.go | INVERT_NEGATIVES | "+line+" | of no use\n", 0o600)
	for _, kinds := range [][]any{{"ARITHMETIC_BASE", "INVERT_NEGATIVES"}, {"INVERT_NEGATIVES", "ARITHMETIC_BASE"}} {
		fake := gremlinsThat(t, fmt.Sprintf("RUNNABLE %s at m.go:5:34\nRUNNABLE %s at m.go:5:34\n", kinds...))
		var out, err bytes.Buffer
		if code := run([]string{"-root", dir, "-explained", explained, "-gremlins", fake, "."}, &out, &err); code != 0 || !strings.Contains(out.String(), "of 1 changes 0 killed, 0 survived, 1 explained") {
			t.Errorf("%v: exit %d\n%s%s", kinds, code, out.String(), err.String())
		}
	}
}

// Each of gremlins' changes is made where it says, and what it does not change is an error.
func TestOperatorsAreChangedInTheirPlace(t *testing.T) {
	dir := t.TempDir()
	const text = "package m\n\n\ta <= b; c == -d; e++; f % g\n"
	write(t, filepath.Join(dir, "m.go"), text, 0o600)
	for _, c := range []struct {
		kind   string
		column int
		old    string
		new    string
	}{
		{"CONDITIONALS_BOUNDARY", 4, "<=", "<"},
		{"CONDITIONALS_NEGATION", 4, "<=", ">"},
		{"CONDITIONALS_NEGATION", 12, "==", "!="},
		{"INVERT_NEGATIVES", 15, "-d", "+d"},
		{"INCREMENT_DECREMENT", 20, "++", "--"},
		{"ARITHMETIC_BASE", 26, "%", "*"},
	} {
		o, err := find(dir, ".", "m.go", c.kind, 3, c.column)
		got, _ := o.changed(dir)
		if want := strings.Replace(text, c.old, c.new, 1); err != nil || got != want {
			t.Errorf("%s at %d: %q, %v, want %q", c.kind, c.column, got, err, want)
		}
	}
	for _, c := range []struct {
		kind         string
		line, column int
	}{{"ARITHMETIC_BASE", 3, 4}, {"ARITHMETIC_BASE", 9, 1}, {"ARITHMETIC_BASE", 3, 99}, {"ARITHMETIC_BASE", 0, 0}, {"OTHER", 3, 4}} {
		if _, err := find(dir, ".", "m.go", c.kind, c.line, c.column); err == nil {
			t.Errorf("%s at %d:%d was found", c.kind, c.line, c.column)
		}
	}
}

// A run of gremlins that changed nothing is no success.
func TestGremlinsThatDoNothing(t *testing.T) {
	var out, err bytes.Buffer
	if code := run([]string{"-root", module(t), "-gremlins", "true", "."}, &out, &err); code != 1 || !strings.Contains(out.String(), "FAILED") {
		t.Errorf("exit %d\n%s", code, out.String())
	}
}

func TestWrongCommandLines(t *testing.T) {
	for _, args := range [][]string{{"-bogus"}, {"-for", "x"}, {"-for", "0s"}, {"-only", "("}} {
		var out, err bytes.Buffer
		if code := run(args, &out, &err); code != 2 || err.Len() == 0 {
			t.Errorf("%q: exit %d, %q", args, code, err.String())
		}
	}
}

// Whatever a list says, what is read can be tried.
func FuzzList(f *testing.F) {
	f.Add(listed)
	f.Add("[a]\nfile x\nold y\ntest z\n")
	f.Add("file x\n")
	f.Add("[]\n[")
	f.Fuzz(func(t *testing.T, text string) {
		all, err := readList(write(t, filepath.Join(t.TempDir(), "list"), text, 0o600))
		if err != nil {
			return
		}
		for _, c := range all {
			if c.name == "" || c.file == "" || c.old == "" || len(c.test) == 0 || c.old == c.new {
				t.Errorf("%+v", c)
			}
		}
	})
}

// The project's own lists fit its tree.
func TestTheProjectsListsFit(t *testing.T) {
	root := filepath.Join("..", "..")
	changes, err := readList(filepath.Join(root, "ci", "mutants.d", "list"))
	if err != nil || len(changes) < 20 {
		t.Fatalf("%d changes, %v", len(changes), err)
	}
	for _, c := range changes {
		if text, err := os.ReadFile(filepath.Join(root, c.file)); err != nil || strings.Count(string(text), c.old) != 1 {
			t.Errorf("[%s]: %v, %d times in %s", c.name, err, strings.Count(string(text), c.old), c.file)
		}
	}
	if _, err := readExplanations(root, filepath.Join(root, "ci", "mutants.d", "explained")); err != nil {
		t.Error(err)
	}
}
