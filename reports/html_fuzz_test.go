package reports_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/rdmaperf/rdmaperf/reports"
)

// Whatever stands in the files, the page has one script, and it is ours.
func FuzzWriteHTML(f *testing.F) {
	for _, d := range []*reports.Document{goldenDocument(), {}} {
		var b bytes.Buffer
		if err := d.WriteJSON(&b); err != nil {
			f.Fatal(err)
		}
		f.Add(b.Bytes(), []byte(showcaseRecords))
	}
	f.Add([]byte(`{"schema":"rdmaperf/v1","results":[{"stack":"</script><script>","latency":{"count":-1,"hdr":"x"},"hol":{},"rate":-5,"throughput":{}}]}`), []byte(`{"id":"<script>","transport":"</table>","verdict":"x"}`))
	f.Fuzz(func(t *testing.T, document, lines []byte) {
		d, err := reports.ReadDocument(bytes.NewReader(document))
		if err != nil {
			return
		}
		cases, err := reports.ReadConformance(bytes.NewReader(lines))
		if err != nil {
			cases = nil
		}
		var page strings.Builder
		if err := reports.WriteHTML(&page, []*reports.Document{d}, reports.HTMLOptions{Conformance: cases}); err != nil {
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
