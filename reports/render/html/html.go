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

// Write writes one page about all documents: self-contained, without any
// network reference, complete without scripts. Results of the same stack, load
// and size are repeats of each other when they come from one document, and
// separate series when they come from several. The same input gives the same
// bytes. It writes nothing when it fails before the end.
func Write(w io.Writer, docs []*reports.Document, o page.Options) error {
	var b bytes.Buffer
	if err := parsedPage().Execute(&b, draw(page.New(docs, o))); err != nil {
		return fmt.Errorf("write HTML report: %w", err)
	}
	// The last word on strings of any origin: the page's own text has neither
	// control characters nor signs that turn the direction of what follows.
	if _, err := w.Write(bytes.Map(PageRune, b.Bytes())); err != nil {
		return fmt.Errorf("write HTML report: %w", err)
	}
	return nil
}

// PageRune drops what must not stand on a page, whoever wrote it.
func PageRune(r rune) rune {
	if r != '\n' && (unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r)) {
		return -1
	}
	return r
}

// drawn is what the template reads: the page with its charts drawn.
type drawn struct {
	CSP    string
	Style  template.CSS
	Script template.JS

	*page.Page
	Sections []sectionView
}

func draw(p *page.Page) *drawn {
	v := &drawn{
		CSP: "default-src 'none'; base-uri 'none'; form-action 'none'; style-src '" + sourceHash(style) +
			"'; script-src '" + sourceHash(script) + "'",
		Style:  template.CSS(style),
		Script: template.JS(script),
		Page:   p,
	}
	charts := 0
	for _, s := range p.Sections {
		of := sectionView{ID: s.ID, Title: s.Title, Intro: s.Intro}
		for _, f := range s.Figures {
			charts++
			of.Figures = append(of.Figures, figureView{f.Title, f.Shows, f.Caption, drawing(f.Chart, fmt.Sprintf("c%d", charts)),
				f.Data})
		}
		v.Sections = append(v.Sections, of)
	}
	return v
}

// drawing draws one; id is unique on the page.
func drawing(c view.Chart, id string) template.HTML {
	switch c := c.(type) {
	case *view.LineChart:
		return drawLines(c, id)
	case *view.BarChart:
		return drawBars(c, id)
	case *view.PairChart:
		return drawPairs(c, id)
	case *view.HeatMap:
		return drawHeat(c, id)
	}
	panic(fmt.Sprintf("html: no drawing for a %T", c))
}

// sectionView and figureView are what the template reads of them.
type sectionView struct {
	ID, Title, Intro string
	Figures          []figureView
}

type figureView struct {
	Title, Shows, Caption string
	SVG                   template.HTML
	Data                  view.Grid
}

// sourceHash is a Content-Security-Policy source that allows exactly this text.
func sourceHash(s string) string {
	sum := sha256.Sum256([]byte(s))
	return "sha256-" + base64.StdEncoding.EncodeToString(sum[:])
}
