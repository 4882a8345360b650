// Package html draws a page as one HTML file that loads nothing: its template, its style, and charts in SVG.
package html

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"fmt"
	"html/template"
	"io"
	"sync"
	"unicode"

	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/reports/page"
	"github.com/rdmaperf/rdmaperf/reports/view"
)

//go:embed templates/report.tmpl
var pageTemplate string

//go:embed templates/report.css
var style string

//go:embed templates/report.js
var script string

var parsedPage = sync.OnceValue(func() *template.Template {
	return template.Must(template.New("report").Funcs(template.FuncMap{"breakable": breakable}).Parse(pageTemplate))
})

// Write writes one page about all documents without any network reference, complete without scripts. Results of one
// document are repeats, of several separate series. The same input gives the same bytes. It writes nothing when it
// fails.
func Write(w io.Writer, docs []*reports.Document, o page.Options) error {
	var b bytes.Buffer
	d := &drawn{Page: page.New(docs, o), Style: template.CSS(style), Script: template.JS(script),
		CSP: "default-src 'none'; base-uri 'none'; form-action 'none'; style-src '" + sourceHash(style) +
			"'; script-src '" + sourceHash(script) + "'"}
	if err := parsedPage().Execute(&b, d); err != nil {
		return fmt.Errorf("write HTML report: %w", err)
	}
	// The page's own text has neither control characters nor signs that turn the direction.
	return reports.WriteAll(w, "HTML report", bytes.Map(PageRune, b.Bytes()))
}

// PageRune drops what must not stand on a page, whoever wrote it.
func PageRune(r rune) rune {
	if r != '\n' && (unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r)) {
		return -1
	}
	return r
}

type drawn struct {
	*page.Page
	CSP    string
	Style  template.CSS
	Script template.JS
	charts int // drawn so far
}

// Draw draws one; each has an ID of its own on the page.
func (d *drawn) Draw(c view.Chart) template.HTML {
	d.charts++
	return drawing(c, fmt.Sprintf("c%d", d.charts))
}

func drawing(c view.Chart, id string) template.HTML {
	switch c := c.(type) {
	case *view.LineChart:
		return Lines(c, id)
	case *view.BarChart:
		return drawBars(c, id)
	case *view.PairChart:
		return drawPairs(c, id)
	case *view.HeatMap:
		return drawHeat(c, id)
	}
	panic(fmt.Sprintf("html: no drawing for a %T", c))
}

// sourceHash is a Content-Security-Policy source that allows exactly this text.
func sourceHash(s string) string {
	sum := sha256.Sum256([]byte(s))
	return "sha256-" + base64.StdEncoding.EncodeToString(sum[:])
}
