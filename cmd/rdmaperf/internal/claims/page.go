package claims

import (
	"fmt"
	"html/template"
	"io"
	"slices"
	"strings"
)

// WriteMarkdown writes the page of the paper.
func (r *Report) WriteMarkdown(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "# %s\n\n%s. Measured by `rdmaperf reproduce %s` on %s.\n\n%s.\n", r.Title, r.Source, r.Paper, r.Machine(),
		r.Summary())
	for _, c := range r.Claims {
		fmt.Fprintf(&b, "\n**%s, %s.** %s (%s", c.ID, c.Verdict, c.Says, c.Source)
		if len(c.Published) > 0 {
			fmt.Fprintf(&b, "; published: %s", strings.Join(c.Published, "; "))
		}
		if c.Label != "" {
			fmt.Fprintf(&b, "; measured: %s", c.Label)
		}
		b.WriteString(")\n")
		if why := c.Reason(); why != "" {
			fmt.Fprintf(&b, "- %s\n", why)
		}
		for _, f := range c.Findings {
			fmt.Fprintf(&b, "- %s\n", f.Line())
		}
	}
	b.WriteString("\nThe runs, each of which can be repeated by itself:\n\n```\n")
	for _, line := range r.commands() {
		b.WriteString(line + "\n")
	}
	b.WriteString("```\n")
	_, err := io.WriteString(w, b.String())
	return err
}

// commands are those of all claims, each once.
func (r *Report) commands() (all []string) {
	for _, c := range r.Claims {
		for _, line := range c.Commands {
			if !slices.Contains(all, line) {
				all = append(all, line)
			}
		}
	}
	return all
}

// WriteHTML writes the page of the paper for a browser: a file without any other.
func (r *Report) WriteHTML(w io.Writer) error { return page.Execute(w, r) }

// Class is the verdict in a word.
func (c Outcome) Class() string { return strings.Fields(string(c.Verdict))[0] }

var page = template.Must(template.New("page").Parse(`<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>rdmaperf reproduce {{.Paper}}</title>
<style>
body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem}
section{border-top:1px solid #8884;padding:.5rem 0}h2{font-size:1.05rem;margin:.4rem 0}
table{border-collapse:collapse;width:100%}td,th{text-align:left;vertical-align:top;padding:.2rem 1rem .2rem 0;width:50%}
b{padding:0 .5em;border-radius:.3em;color:#fff;background:#666}b.shown{background:#17703c}b.not{background:#a61b1b}
code{overflow-wrap:anywhere}:root{color-scheme:light dark}
</style></head><body>
<h1>{{.Title}}</h1><p>{{.Source}}</p><p>{{.Machine}}</p><p>{{.Summary}}</p>
{{range .Claims}}<section id="{{.ID}}"><h2>{{.ID}} <b class="{{.Class}}">{{.Verdict}}</b> {{.Says}}</h2>
<p>{{.Source}}{{with .Label}} · measured: {{.}}{{end}}{{with .Reason}} · {{.}}{{end}}</p>
<table><tr><th>published</th><th>here</th></tr><tr><td>{{range .Published}}{{.}}<br>{{else}}–{{end}}</td>
<td>{{range .Findings}}{{.Line}}<br>{{else}}–{{end}}</td></tr></table>
<details><summary>Repeat it</summary><p><code>rdmaperf reproduce {{$.Paper}} --only {{.ID}}</code></p>
{{range .Commands}}<p><code>{{.}}</code></p>{{end}}</details></section>
{{end}}</body></html>
`))
