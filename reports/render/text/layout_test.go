package text

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/reports/view"
)

// largeTable is one as large runs print it.
func largeTable(factor float64) *view.Table {
	t := &view.Table{Columns: latencyColumns}
	for _, size := range []string{"64", "1048576"} {
		row := []view.Cell{{Text: size}, {Text: "10000000"}}
		for i := range len(latencyColumns) - 2 {
			row = append(row, view.Cell{Text: view.Usec(factor * float64(i+1)), Mark: i == 4 || i == 5})
		}
		t.Add(row...)
	}
	return t
}

func widest(lines []string) (w int) {
	for _, l := range lines {
		w = max(w, utf8.RuneCountInString(l))
	}
	return w
}

// A table of latency fits a terminal of 80 columns with what matters, and a wider one has all there is.
func TestLatencyTableFitsTheTerminal(t *testing.T) {
	for _, factor := range []float64{1e3, 9e4, 8.5e6, 9e7} { // to 810 ms
		table := inMilliseconds(largeTable(factor))
		narrow, wide := layout(table, 80), layout(table, 120)
		if a, b := widest(narrow), widest(wide); a > 80 || b > 120 {
			t.Errorf("factor %g: %d and %d columns:\n%s\n%s", factor, a, b, strings.Join(narrow, "\n"),
				strings.Join(wide, "\n"))
		}
		for _, name := range []string{"#bytes", "#iterations", "min", "p50", "p99", "p99.9", "max"} {
			if !strings.Contains(" "+strings.ReplaceAll(narrow[0], "[", " ")+" ", " "+name+" ") {
				t.Errorf("factor %g: no %s at 80 columns: %s", factor, name, narrow[0])
			}
		}
		for _, c := range latencyColumns {
			if !strings.Contains(wide[0], c.Name) {
				t.Errorf("factor %g: no %s at 120 columns: %s", factor, c.Name, wide[0])
			}
		}
	}
}

// Times are in milliseconds where all of them are.
func TestTimesAreMillisecondsWhereAllAre(t *testing.T) {
	times := func(texts ...string) string {
		table := &view.Table{Columns: []view.Column{{Name: "#bytes"}, {Name: "p50", Unit: "us"}}}
		for _, s := range texts {
			table.Add(view.Cell{Text: "64"}, view.Cell{Text: s})
		}
		var out []string
		for _, r := range inMilliseconds(table).Rows {
			out = append(out, r.Cells[0].Text+" "+r.Cells[1].Text)
		}
		return inMilliseconds(table).Columns[1].Unit + " " + strings.Join(out, ", ")
	}
	for want, in := range map[string][]string{
		"ms 64 1.00, 64 >245.43, 64 -":   {"1000.00", ">245428.67", "-"},
		"us 64 999.99, 64 245428.67":     {"999.99", "245428.67"},
		"us 64 -":                        {"-"},
		"us 64 4000.35 (4000.29..6.16)":  {"4000.35 (4000.29..6.16)"},
		"us 64 2000.00, 64 not a number": {"2000.00", "not a number"},
	} {
		if got := times(in...); got != want {
			t.Errorf("%q gives %q, want %q", in, got, want)
		}
	}
}

// A name too long for the width has a line of its own, the rest of its row follows, and nothing is lost.
func TestLongNamesGetALine(t *testing.T) {
	long := "grpc(dropin,bpev,busy=200us,pollers=1,idle=1ms,ring=256K,watch)+iwarp(crc)"
	table := &view.Table{Columns: []view.Column{{Name: "#bytes"}, {Name: "stack", Left: true},
		{Name: "p50", Unit: "us"}, {Name: "p99", Unit: "us"}},
		Rows: []view.Row{
			{Cells: []view.Cell{{Text: "64"}, {Text: "tcp"}, {Text: "7.21"}, {Text: "36.77"}}},
			{Cells: []view.Cell{{Text: "4096"}, {Text: long}, {Text: "103.68"}, {Text: "329.47", Mark: true}}},
		}}
	for _, width := range []int{60, 80, 120} {
		lines := layout(table, width)
		for _, l := range lines {
			if len(l) > width {
				t.Errorf("at %d: %q has %d columns", width, l, len(l))
			}
		}
		if all := strings.Join(strings.Fields(strings.Join(lines, "\n")), ""); !strings.Contains(all,
			long+"103.68329.47*") {
			t.Errorf("at %d the long row is lost:\n%s", width, strings.Join(lines, "\n"))
		}
		ends := map[int]bool{}
		for _, l := range lines {
			for _, cell := range []string{"7.21", "103.68"} {
				if at := strings.Index(l, cell); at >= 0 {
					ends[at+len(cell)] = true
				}
			}
		}
		if len(ends) != 1 {
			t.Errorf("at %d the column p50 ends at %v:\n%s", width, ends, strings.Join(lines, "\n"))
		}
	}
	lines := view.Wrap("side by side: latency, ratio to "+long+" of "+long, 60, "  ")
	if w := widest(lines); w > 60 || strings.ReplaceAll(strings.ReplaceAll(strings.Join(lines, ""), "  ", ""), " ",
		"") != "sidebyside:latency,ratioto"+long+"of"+long {
		t.Errorf("%d columns, or something lost: %q", w, lines)
	}
	if got := view.Folded("a,b+c", 2); strings.Join(got, "|") != "a,|b|+c" {
		t.Errorf("folded: %q", got)
	}
}

// Points of one name have one remark on why they are unreliable, and one on what was compared and failed.
func TestPointsOfOneNameAreRemarkedOnTogether(t *testing.T) {
	disturbed := func(verdict, why string) *reports.Disturbance {
		return &reports.Disturbance{Verdict: verdict, Reasons: []string{why}}
	}
	compared := func(messages, whole int64) *reports.Verification {
		return &reports.Verification{Mode: reports.VerifySample, Messages: messages, Numbers: messages, Whole: whole,
			Bytes: 64 * whole}
	}
	quiet := &reports.Result{Disturbance: disturbed(reports.VerdictQuiet, ""), Verification: compared(10, 10)}
	for name, c := range map[string]struct {
		points []*reports.Result
		want   string
	}{
		"nothing to say": {[]*reports.Result{quiet, quiet}, ""},
		"one disturbed": {[]*reports.Result{quiet, {Disturbance: disturbed(reports.VerdictDisturbed, "steal")}},
			"64 bytes: noise: steal\n"},
		"others, too": {[]*reports.Result{{Disturbance: disturbed(reports.VerdictDisturbed, "steal")}, quiet,
			{Disturbance: disturbed(reports.VerdictDisturbed, "faults")}},
			"64 bytes: noise: steal; 2 of 3 points are no better\n"},
		"a repeat": {[]*reports.Result{quiet,
			{Repeat: 2, Disturbance: disturbed(reports.VerdictDisturbed, "steal"), Errors: 4}},
			"64 bytes, repeat 2: noise: steal\n64 bytes: 4 failed operations\n"},
		"one impossible": {[]*reports.Result{{Disturbance: disturbed(reports.VerdictDisturbed, "steal")},
			{Disturbance: disturbed(reports.VerdictImpossible, "101 %")}},
			"64 bytes: impossible: 101 %; 2 of 2 points are no better\n"},
		"sums": {[]*reports.Result{{Verification: compared(10, 2), Errors: 1},
			{Verification: compared(30, 3), Errors: 2}},
			"64 bytes: of 40 messages 5 compared byte by byte and the numbers of 40, 320 bytes\n64 bytes: 3 failed " +
				"operations\n"},
		"nothing to hold": {[]*reports.Result{{Verification: &reports.Verification{Mode: reports.VerifyNone,
			Messages: 9}}}, ""},
	} {
		p := &printer{Options: Options{Width: 200}}
		p.remarksOf("64 bytes", c.points, func(r *reports.Result) string {
			if r.Repeat > 0 {
				return "64 bytes, repeat 2"
			}
			return "64 bytes"
		})
		if got := p.out.String(); !strings.Contains(got, c.want) || strings.Count(got, "\n") != strings.Count(c.want,
			"\n") {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
