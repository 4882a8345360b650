package latex

import (
	"bytes"
	"math"
	"os"
	"strings"
	"testing"
	"unicode"

	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/reports/page"
	"github.com/rdmaperf/rdmaperf/reports/view"
)

// fixedRun is that of the other formats.
func fixedRun(t testing.TB) *reports.Document {
	t.Helper()
	b, _ := os.ReadFile("../../testdata/document.json") // an empty document is an error
	d, err := reports.ReadDocument(bytes.NewReader(b),
		reports.Workloads{{Name: "latency", Shown: []string{"p50", "p99", "mean"}}})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func write(t testing.TB, docs ...*reports.Document) string {
	t.Helper()
	var b bytes.Buffer
	if err := Write(&b, docs, page.Options{}); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// typeset reads a line of the commands that Text writes, as LaTeX would set it.
func typeset(t testing.TB, s string) string {
	t.Helper()
	signs := map[string]string{}
	for r, c := range commands {
		signs[c] = string(r)
	}
	signs[`$\mu$`], signs["{}"] = "µ", ""
	var b strings.Builder
	for s != "" {
		long := ""
		for c := range signs {
			if strings.HasPrefix(s, c) && len(c) > len(long) {
				long = c
			}
		}
		if long != "" {
			b.WriteString(signs[long])
			s = s[len(long):]
			continue
		}
		if strings.ContainsAny(s[:1], "\\{}$&#_%^~<>|\"`'[]*") || s[0] < ' ' || s[0] > '~' ||
			strings.HasPrefix(s, "--") || strings.HasPrefix(s, ",,") {
			t.Fatalf("%q is left bare", s)
		}
		b.WriteByte(s[0])
		s = s[1:]
	}
	return b.String()
}

// asRead is what a line says, with ? for what has no command.
func asRead(s string) string {
	return strings.Map(func(r rune) rune {
		switch _, known := commands[r]; {
		case r == 'μ': // mu is micro
			return 'µ'
		case !known && (r < ' ' || r > '~'):
			return '?'
		}
		return r
	}, strings.Join(strings.FieldsFunc(view.Visible(s), func(r rune) bool { return r == ' ' }), " "))
}

// Every sign of ASCII, and those that rdmaperf writes, read as they are.
func TestEverySignIsEscaped(t *testing.T) {
	ascii := ""
	for r := ' '; r <= '~'; r++ {
		ascii += string(r) + " " + string(r) + string(r)
	}
	for _, s := range []string{ascii, `\input{/etc/passwd}`, "50 % of a_b & $c #1", "--op ---", "[x]*",
		"4.3 µs × 2 ÷ 3 ± 1 · … ✓", "é 漢", "a\nb\tc\x00\u202e", "sched(strict)+iwarp(crc)"} {
		if got, want := typeset(t, Text(s)), asRead(s); got != want {
			t.Errorf("%q is set as %q, want %q", s, got, want)
		}
	}
}

func FuzzText(f *testing.F) {
	for _, s := range []string{`\end{table}`, "%\n", "--", "^^M", "$", "\u202f", "{", "~`'"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if got, want := typeset(t, Text(s)), asRead(s); got != want {
			t.Errorf("%q is set as %q, want %q", s, got, want)
		}
	})
}

// shape holds a file against what every table has.
func shape(t testing.TB, out string) (tables int) {
	t.Helper()
	for _, r := range out {
		if r != '\n' && (unicode.IsControl(r) || r > '~') {
			t.Fatalf("the file holds %q", r)
		}
	}
	columns := 0
	for l := range strings.Lines(out) {
		l = strings.TrimSuffix(l, "\n")
		switch spec, begins := strings.CutPrefix(l, "\\begin{tabular}{"); {
		case strings.HasPrefix(l, "%"):
		case begins:
			columns = len(spec) - 1
			tables++
		case strings.HasSuffix(l, ` \\`):
			if n := len(strings.Split(l, " & ")); n != columns {
				t.Errorf("%d cells in a table of %d columns: %s", n, columns, l)
			}
		}
	}
	for _, e := range []string{"table", "tabular"} {
		if b, n := strings.Count(out, "\\begin{"+e+"}"), strings.Count(out, "\\end{"+e+"}"); b != tables ||
			n != tables {
			t.Errorf("%s begins %d times and ends %d times, want %d", e, b, n, tables)
		}
	}
	bare := strings.NewReplacer(`\{`, "", `\}`, "").Replace(out)
	if a, b := strings.Count(bare, "{"), strings.Count(bare, "}"); a != b {
		t.Errorf("%d braces open and %d close", a, b)
	}
	return tables
}

// Each load of the run has its tables, whose captions say where and how.
func TestTablesSayWhereTheyAreFrom(t *testing.T) {
	d := fixedRun(t)
	out := write(t, d)
	want := 0
	for _, r := range page.New([]*reports.Document{d}, page.Options{}).Results {
		want += len(r.Main)
	}
	if got := shape(t, out); got != want || want < 4 || strings.Count(out, "Example CPU @ 2.30GHz") != want {
		t.Errorf("%d tables, want %d:\n%s", got, want, out)
	}
	if got := write(t, d, d); strings.Count(got, "and with") != 0 {
		t.Error("two documents of one command are named twice")
	}
}

// Foreign names neither end a table nor start a command, and no figure is none.
func TestForeignNamesAreText(t *testing.T) {
	const evil = "x\x1b[2J\r\n\\end{document} % \\input{/etc/passwd} ${}#^_~&\u2028\u202e"
	d := fixedRun(t)
	d.Environment.CPU, d.Environment.Kernel, d.Command = evil, evil, []string{evil}
	d.Error.Message, d.Error.Operation = evil, evil
	for i := range d.Results {
		r := &d.Results[i]
		r.Stack, r.Transport, r.Polling, r.Label = evil, evil, evil, evil
		if r.Latency != nil {
			r.Latency.Mean, r.Latency.P99 = math.NaN(), math.Inf(1)
		}
		if r.Throughput != nil {
			r.Throughput.BytesPerSecond = math.NaN()
		}
	}
	out := write(t, d)
	shape(t, out)
	for _, bad := range []string{"\\end{document}", "\\input{/", "NaN", "Inf"} {
		if strings.Contains(strings.ReplaceAll(out, "\\input this", ""), bad) {
			t.Errorf("the file holds %s", bad)
		}
	}
}

func TestNothingIsAFile(t *testing.T) {
	for _, docs := range [][]*reports.Document{nil, {{}}} {
		if out := write(t, docs...); shape(t, out) != 0 || !strings.Contains(out, "% no results") {
			t.Errorf("%q", out)
		}
	}
}
