package reports_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/rdmaperf/rdmaperf/reports"
	pages "github.com/rdmaperf/rdmaperf/reports/page"
	htmlformat "github.com/rdmaperf/rdmaperf/reports/render/html"
)

// Whatever stands in the files, the page has one script, and it is ours.
func FuzzWriteHTML(f *testing.F) {
	for _, b := range fuzzDocuments(f, goldenDocument()) {
		f.Add(b, []byte(`{"id":"ord/write","transport":"mem","verdict":"pass"}`))
	}
	f.Add([]byte(`{"schema":"rdmaperf/v1","results":[{"stack":"</script><script>","latency":{"count":-1,"hdr":"x"},"hol":{},"rate":-5,"throughput":{}}]}`), []byte(`{"id":"<script>","transport":"</table>","verdict":"x"}`))
	f.Fuzz(func(t *testing.T, document, lines []byte) {
		d, err := reports.ReadDocument(bytes.NewReader(document), workloads)
		if err != nil {
			return
		}
		cases, err := pages.ReadConformance(bytes.NewReader(lines))
		if err != nil {
			cases = nil
		}
		var page strings.Builder
		if err := htmlformat.Write(&page, []*reports.Document{d}, pages.Options{Conformance: cases}); err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(strings.ToLower(page.String()), "<script"); n != 1 {
			t.Errorf("%d script elements, want 1", n)
		}
		if !strings.HasSuffix(page.String(), "</html>\n") {
			t.Error("the page has no end")
		}
	})
}
