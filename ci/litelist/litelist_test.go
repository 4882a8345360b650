package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rdmaperf/rdmaperf/reports"
)

// stub is a program that answers as text says, with an exit code.
func stub(t *testing.T, text string, code string) *runner {
	t.Helper()
	file := filepath.Join(t.TempDir(), "rdmaperf")
	script := "#!/bin/sh\nfor a; do last=$a; done\ncase $1 in run) cat >\"$last\" <<'X'\n" + text +
		"\nX\n;; *) cat <<'X'\n" + text + "\nX\n;; esac\necho why it is >&2\nexit " + code + "\n"
	if err := os.WriteFile(file, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	return &runner{program: file, dir: t.TempDir()}
}

func walk(r *runner, show func(r *runner)) line {
	return r.walk(context.Background(), claim{"L0", "a claim", show})
}

// A claim passes by a figure alone: not by a command that fails, is not here, prints nothing
// of what was asked, or runs out of time.
func TestNothingPassesWithoutAFigure(t *testing.T) {
	cases := func(r *runner) { r.conform("a", "b") }
	four := strings.Repeat("{\"id\":\"a\",\"verdict\":\"pass\"}\n", 4)
	counts := func(r *runner) { r.falls(r.run("x"), "count", 1, 10, "regions") }
	for _, c := range []struct {
		name, text, code string
		show             func(r *runner)
		want             verdict
		failed           bool
		says             string
	}{
		{"all cases pass", four, "0", cases, pass, false, "4 of 4"},
		{"one case fails", strings.Replace(four, "pass", "fail", 1), "0", cases, fail, false, "3 of 4"},
		{"one case is missing", strings.Repeat("{\"id\":\"a\",\"verdict\":\"pass\"}\n", 3), "0", cases, fail, false,
			"3 of 4"},
		{"nothing is printed", "", "0", cases, fail, false, "0 of 4"},
		{"the command fails", four, "1", cases, fail, true, "why it is"},
		{"the command cannot run", four, "77", cases, notRun, false, "why it is"},
		{"nothing is done", "", "0", func(*runner) {}, fail, true, "nothing was measured"},
		{"no results", `{"results":[]}`, "0", counts, fail, true, "no results"},
		{"no document", `{`, "0", counts, fail, true, "rdmaperf run"},
		{"results of others", `{"results":[{"transport":"tcp","workload":"regions","op":"count","regions":{"x":1,"values":{"rate":1}}}]}`, "0", counts, fail, false, "native 0.00"},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := walk(stub(t, c.text, c.code), c.show)
			all := strings.Join(append(l.figures, l.why...), "\n")
			if l.verdict != c.want || l.failed != c.failed || !strings.Contains(all, c.says) {
				t.Errorf("%s, failed %v, want %s, %v with %q:\n%s", l.verdict, l.failed, c.want, c.failed, c.says, all)
			}
		})
	}
	r := stub(t, four, "0")
	over, cancel := context.WithCancel(context.Background())
	cancel()
	if l := r.walk(over, claim{"L0", "late", cases}); l.verdict != notRun || len(l.commands) > 0 {
		t.Errorf("when the time is over: %+v", l)
	}
}

// The model's claim holds by its numbers, and falls with either of them.
func TestFiguresAreHeldAgainstTheirBounds(t *testing.T) {
	doc := func(native, tier string) string {
		var b []string
		for _, size := range []string{"64", "1024"} {
			for _, p := range [][3]string{{onModel, "1", "10"}, {onModel, "10", native}, {ofModel, "1", "10"},
				{ofModel, "10", tier}} {
				b = append(b, `{"transport":"`+p[0]+`","workload":"regions","op":"count","size_bytes":`+size+`,"regions":{"x":`+p[1]+`,"values":{"rate":`+p[2]+`}}}`)
			}
		}
		return `{"results":[` + strings.Join(b, ",") + `]}`
	}
	for _, c := range []struct {
		native, tier string
		want         verdict
	}{{"5", "9", pass}, {"5.1", "9", fail}, {"5", "8.9", fail}} {
		l := walk(stub(t, doc(c.native, c.tier), "0"), func(r *runner) {
			r.falls(r.run("x"), "count", 1, 10, "regions")
		})
		if l.verdict != c.want || l.failed {
			t.Errorf("native %s, LITE %s: %s, want %s: %v", c.native, c.tier, l.verdict, c.want, l.figures)
		}
	}
}

// SW-Pri is held against high alone and against HW-Sep, and what the CPUs leave low is told:
// of two, low takes 1.6 for 2000 MiB/s and high 1.2.
func TestClassesAreHeldAgainstEachOther(t *testing.T) {
	for _, c := range []struct {
		high, low, model string
		want             verdict
	}{{"80", "1048576000", "80", pass}, {"80.1", "1048576000", "80", fail}, {"80", "1048575999", "80", fail},
		{"80", "1048576000", "80.1", fail}} {
		var b []string
		for below, thirds := range map[string]float64{"+iwarp": 2, "+model(cx3)+mem": 0.1} {
			for _, a := range []string{"lite", "lite(qos=hwsep)", "lite(qos=swpri)"} {
				high, low := c.high, c.low
				if below != "+iwarp" {
					high, low = c.model, "500"
				}
				if a != "lite(qos=swpri)" {
					high, low = "400", "1048576000"
				}
				for i, values := range []string{`"low_bytes":2097152000`, `"high_p50_ns":` + high +
					`,"high_rate":50,"low_bytes":` + low, `"high_p50_ns":40,"high_rate":100`} {
					cpu := []string{"1.6", "2", "1.2"}[i]
					b = append(b, fmt.Sprintf(
						`{"transport":%q,"workload":"qos","duration_ns":1000000000,"cpu":{"client_seconds":%s},"qos":{"x":%g,"values":{%s}}}`, a+below, cpu, (float64(i)+0.5)*thirds, values))
				}
			}
		}
		l := walk(stub(t, `{"results":[`+strings.Join(b, ",")+`]}`, "0"), showClasses)
		all := strings.Join(l.figures, "\n")
		if l.verdict != c.want || l.failed ||
			!strings.Contains(all, "low alone takes 1.60 and high alone 1.20, leave low 1000 MiB/s") ||
			!strings.Contains(all, "together: none 1.00") {
			t.Errorf("high %s, low %s, model %s: %s, want %s:\n%s", c.high, c.low, c.model, l.verdict, c.want, all)
		}
	}
}

func TestExitCodes(t *testing.T) {
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	good, missed, absent, broken := line{verdict: pass}, line{verdict: fail}, line{verdict: notRun},
		line{verdict: fail, failed: true}
	for _, c := range []struct {
		all  []line
		want int
	}{{[]line{good}, 0}, {[]line{good, missed, absent}, reports.ExitThreshold},
		{[]line{good, absent}, reports.ExitNotRun}, {[]line{broken, missed, absent}, reports.ExitFailed}} {
		if got := reports.Code(verdictOf(null, c.all)); got != c.want {
			t.Errorf("%+v: exit code %d, want %d", c.all, got, c.want)
		}
	}
	for _, bad := range []string{"L19", "L1,L0", "x"} {
		if _, err := choose(bad); reports.Code(err) != reports.ExitUsage {
			t.Errorf("--only %s: %v", bad, err)
		}
	}
	if all, err := choose(""); err != nil || len(all) != 18 {
		t.Errorf("%d claims, %v", len(all), err)
	}
}

// Nothing is wider than a terminal, and the page is one table whose cells are whole.
func TestWhatIsPrinted(t *testing.T) {
	l := line{name: "L1", what: strings.Repeat("word ", 40), verdict: fail, commands: []string{"go test -run 'A|B' " +
		strings.Repeat("TestOfSomething|", 20)},
		figures: []string{"one", "two"}, why: []string{"against the claim: two", "it | broke"}}
	var b strings.Builder
	print1(&b, l)
	for s := range strings.Lines(b.String()) {
		if len(s) > width+1 {
			t.Errorf("%d columns: %s", len(s)-1, s)
		}
	}
	if out := b.String(); strings.Count(out, "against the claim") != 1 || !strings.Contains(out, "! it | broke") {
		t.Error(out)
	}
	file := filepath.Join(t.TempDir(), "page.md")
	if err := writePage(file, "a machine", []line{l}); err != nil {
		t.Fatal(err)
	}
	l.name = "L2" // L1 stays
	if err := writePage(file, "a machine", []line{l}); err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	rows := strings.Split(strings.TrimSpace(string(page)), "\n")
	if len(rows) != 6 || !strings.HasPrefix(rows[4], "| L1 |") || !strings.HasPrefix(rows[5], "| L2 |") {
		t.Errorf("%q", rows)
	}
	if got := rows[len(rows)-1]; strings.Count(strings.ReplaceAll(got, "\\|", ""), "|") != 6 ||
		!strings.Contains(got, "one; two; it \\| broke") {
		t.Errorf("%s", got)
	}
}
