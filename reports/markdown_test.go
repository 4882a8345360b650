package reports_test

import (
	"io"
	"regexp"
	"strings"
	"testing"

	"github.com/rdmaperf/rdmaperf/reports"
	pages "github.com/rdmaperf/rdmaperf/reports/page"
	markdownformat "github.com/rdmaperf/rdmaperf/reports/render/markdown"
)

func markdown(t *testing.T, o pages.Options, docs ...*reports.Document) string {
	t.Helper()
	return string(render(t, func(w io.Writer) error { return markdownformat.Write(w, docs, o) }))
}

func TestMarkdownGolden(t *testing.T) {
	golden(t, "report.md", []byte(markdown(t, pages.Options{Conformance: records(t)}, goldenDocument())))
	c := compare(t, repeated(100, 101, 102, 103, 104, 105), repeated(110, 111, 112, 113, 114, 115), "p50>+5%")
	golden(t, "compare.md", render(t, func(w io.Writer) error { return markdownformat.WriteComparison(w, c) }))
}

var (
	unescapedBar = regexp.MustCompile(`(?:^|[^\\])\|`)
	liveMarkup   = regexp.MustCompile("[^\\\\][<`\\[]")
)

// Every row of a table has the cells of its head, whatever the names hold.
func TestMarkdownTablesAreWhole(t *testing.T) {
	d := goldenDocument()
	d.Results[0].Stack = "a|b\n| c `d` <img src=x> @someone [e](f) \\"
	cases := []pages.CaseResult{{ID: "x|y", Transport: "t|\r\n|", Verdict: "fail", Got: "a | b\n\n# c"}}
	text := markdown(t, pages.Options{Conformance: cases}, d)
	head := -1
	for n, line := range strings.Split(text, "\n") {
		if !strings.HasPrefix(line, "|") {
			head = -1
			if strings.HasPrefix(line, "# ") {
				t.Errorf("line %d is a heading: %q", n+1, line)
			}
			continue
		}
		// A name ends in a backslash: escaped, it escapes no bar.
		bars := len(unescapedBar.FindAllString(strings.ReplaceAll(line, `\\`, ""), -1))
		if head < 0 {
			head = bars
		}
		if bars != head {
			t.Errorf("line %d has %d bars, its head %d: %q", n+1, bars, head, line)
		}
	}
	own := strings.NewReplacer(`\\`, "", "\n<details><summary>Figures</summary>", "", "\n</details>", "")
	if m := liveMarkup.FindString(own.Replace(text)); m != "" {
		t.Errorf("%q of a name is markup", m)
	}
	lacks(t, text, "@someone")
}

// A page of conformance alone has the matrix and nothing that needs a run.
func TestConformanceStandsAlone(t *testing.T) {
	o := pages.Options{Conformance: records(t)}
	html := page(t, o)
	contains(t, html, "Conformance of ", `id="conformance"`)
	lacks(t, html, "How to reproduce", "There are no results")
	wellFormed(t, html)
}

// A transport that did not run is no good sign, however many cases passed.
func TestNotRunIsNoPass(t *testing.T) {
	cases := must(pages.ReadConformance(strings.NewReader(`{"id":"a/b","transport":"verbs","verdict":"pass"}
{"id":"a/c","transport":"verbs","verdict":"notrun","evidence":"no device"}`)))(t)
	contains(t, markdown(t, pages.Options{Conformance: cases}),
		"- ! Conformance of verbs: 1 passed, 0 failed, 1 did not run.", "no device")
}
