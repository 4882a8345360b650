package reports

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"fmt"
	"html/template"
	"io"
	"slices"
	"strings"
	"sync"
	"unicode"
)

// HTMLOptions adds to a page what the documents do not hold. The zero value is
// a page without file names and without conformance.
type HTMLOptions struct {
	Names       []string     // of the documents, in their order; may be shorter
	Conformance []CaseResult // read with ReadConformance
}

//go:embed templates/report.tmpl
var htmlTemplate string

//go:embed templates/report.css
var htmlStyle string

//go:embed templates/report.js
var htmlScript string

var parsedPage = sync.OnceValue(func() *template.Template {
	return template.Must(template.New("report").Funcs(template.FuncMap{"breakable": breakable}).Parse(htmlTemplate))
})

// WriteHTML writes one page about all documents: self-contained, without any
// network reference, complete without scripts. Results of the same stack, load
// and size are repeats of each other when they come from one document, and
// separate series when they come from several. The same input gives the same
// bytes. It writes nothing when it fails before the end.
func WriteHTML(w io.Writer, docs []*Document, o HTMLOptions) error {
	p := newPage(docs, o)
	var b bytes.Buffer
	if err := parsedPage().Execute(&b, p); err != nil {
		return fmt.Errorf("write HTML report: %w", err)
	}
	// The last word on strings of any origin: the page's own text has neither
	// control characters nor signs that turn the direction of what follows.
	if _, err := w.Write(bytes.Map(pageRune, b.Bytes())); err != nil {
		return fmt.Errorf("write HTML report: %w", err)
	}
	return nil
}

// pageRune drops what must not stand on a page, whoever wrote it.
func pageRune(r rune) rune {
	if r != '\n' && (unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r)) {
		return -1
	}
	return r
}

// page is what the template reads.
type page struct {
	CSP    string
	Style  template.CSS
	Script template.JS

	Title, Subtitle string
	Verdict         verdict
	Sections        []section
	Tables          []htmlTable
	Conformance     *conformanceView
	Runs            []runView
}

// section is a group of charts.
type section struct {
	ID, Title, Intro string
	Figures          []figure
}

// figure is one chart with the figures it was drawn from.
type figure struct {
	Title, Caption string
	SVG            template.HTML
	Data           htmlTable
}

// htmlTable is a table of text; a mark points to the footnote.
type htmlTable struct {
	Caption, Note string
	Head          []htmlCell
	Rows          [][]htmlCell
}

type htmlCell struct {
	Text  string
	Class string
	Head  bool // names its row
	Mark  bool // rests on too few samples
}

// Columns is Head with the alignment of what stands below.
func (t htmlTable) Columns() []htmlCell {
	head := slices.Clone(t.Head)
	if len(t.Rows) > 0 {
		for i, c := range t.Rows[0] {
			if i < len(head) && strings.HasPrefix(c.Class, "n") {
				head[i].Class = "n"
			}
		}
	}
	return head
}

func nameCell(s string) htmlCell   { return htmlCell{Text: visible(s), Head: true} }
func textCell(s string) htmlCell   { return htmlCell{Text: visible(s)} }
func numberCell(s string) htmlCell { return htmlCell{Text: s, Class: "n"} }

func headCells(names ...string) []htmlCell {
	cells := make([]htmlCell, len(names))
	for i, n := range names {
		cells[i] = htmlCell{Text: n}
	}
	return cells
}

func newPage(docs []*Document, o HTMLOptions) *page {
	set := newSampleSet(docs, o.Names)
	p := &page{
		CSP: "default-src 'none'; base-uri 'none'; form-action 'none'; style-src '" + sourceHash(htmlStyle) +
			"'; script-src '" + sourceHash(htmlScript) + "'",
		Style:  template.CSS(htmlStyle),
		Script: template.JS(htmlScript),
		Title:  "rdmaperf report",
	}
	p.Subtitle = subtitle(docs)
	p.Verdict = newVerdict(set, docs, o.Conformance)
	var c charts
	for _, s := range []section{c.holSection(set), c.sliceSection(set), c.trainSection(set), c.starvationSection(set), c.kvSection(set), c.gainSection(set), c.callSection(set), c.percentileSection(set), c.sizeSection(set), c.throughputSection(set), c.rateSection(set), c.sweepSection(set), c.connectSection(set), c.seriesSection(set)} {
		if len(s.Figures) > 0 {
			p.Sections = append(p.Sections, s)
		}
	}
	p.Tables = resultTables(set)
	p.Conformance = newConformanceView(o.Conformance)
	for i, d := range docs {
		p.Runs = append(p.Runs, newRunView(d, set.docName(i)))
	}
	return p
}

// sourceHash is a Content-Security-Policy source that allows exactly this text.
func sourceHash(s string) string {
	sum := sha256.Sum256([]byte(s))
	return "sha256-" + base64.StdEncoding.EncodeToString(sum[:])
}

// subtitle says when and where.
func subtitle(docs []*Document) string {
	var parts []string
	for _, d := range docs {
		s := d.Started.UTC().Format("2 January 2006, 15:04 UTC")
		if h := d.Environment.Hostname; h != "" {
			s += " on " + visible(h)
		}
		if !slices.Contains(parts, s) {
			parts = append(parts, s)
		}
	}
	const show = 3
	if len(parts) > show {
		return fmt.Sprintf("%s, and %s more", parts[0], plural(int64(len(parts)-1), "run"))
	}
	return strings.Join(parts, " · ")
}
