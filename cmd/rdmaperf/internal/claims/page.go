package claims

import (
	"fmt"
	"html/template"
	"io"
	"strings"
)

// WriteMarkdown writes the page of the paper: a row for each claim, its curves, and the commands.
func (r *Report) WriteMarkdown(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "# %s\n\n%s. Measured by `rdmaperf reproduce %s` on %s.\n\n%s. One claim again: ", r.Title, r.Source,
		r.Paper, r.Machine(), r.Summary())
	fmt.Fprintf(&b, "`rdmaperf reproduce %s --only %s`. "+labels+"\n\n| | claim | published | here |\n|---|---|---|---|\n", r.Paper,
		r.Claims[0].ID)
	for _, c := range r.Claims {
		here := []string{}
		for _, f := range c.Findings {
			here = append(here, f.Line())
		}
		if why := c.Reason(); why != "" {
			here = append(here, why)
		}
		if c.Label != "" {
			here[len(here)-1] += " (" + c.Label + ")"
		}
		fmt.Fprintf(&b, "| **%s** %s | %s (%s) | %s | %s |\n", c.ID, c.Verdict, cell(c.Says), cell(c.Source),
			cell(c.Published...), cell(here...))
	}
	for _, c := range r.Claims {
		for _, t := range c.Tables {
			fmt.Fprintf(&b, "\n**%s**: %s", c.ID, t.markdown())
		}
	}
	b.WriteString("\n<details><summary>The commands, each of which can be repeated by itself</summary>\n\n```\n")
	for _, line := range r.commands() {
		b.WriteString(line + "\n")
	}
	b.WriteString("```\n\n</details>\n")
	_, err := io.WriteString(w, b.String())
	return err
}

const labels = "In brackets is what was measured: soft is software on this machine's CPUs, model a simulated NIC, " +
	"mem memory within one process, device an adapter."

// Labels explains the labels once for a page.
func (*Report) Labels() string { return labels }

func cell(lines ...string) string {
	return strings.ReplaceAll(strings.Join(lines, "<br>"), "|", "\\|")
}

// commands are those of all claims, each once, behind the first claims that need them.
func (r *Report) commands() (all []string) {
	seen := map[string]bool{}
	for _, c := range r.Claims {
		head := "# " + c.ID
		for _, line := range c.Commands {
			if seen[line] {
				continue
			}
			if head != "" {
				all, head = append(all, head), ""
			}
			all, seen[line] = append(all, line), true
		}
	}
	return all
}

// WriteIndex writes a line for each paper: its title with a link to its page, and its counts.
func WriteIndex(w io.Writer, all []*Report) error {
	var b strings.Builder
	b.WriteString("# What papers claim, and what of it this machine shows\n\nWritten by `rdmaperf reproduce`.\n\n")
	for _, r := range all {
		_, counts, _ := strings.Cut(r.Summary(), ": ")
		fmt.Fprintf(&b, "- [%s](%s.md): %s\n", r.Title, r.Paper, counts)
	}
	_, err := io.WriteString(w, b.String())
	return err
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
table{border-collapse:collapse;width:100%}td,th{text-align:left;vertical-align:top;padding:.2rem 1rem .2rem 0}
.curve{width:auto;font-variant-numeric:tabular-nums}.curve td+td,.curve th+th{text-align:right}
b{padding:0 .5em;border-radius:.3em;color:#fff;background:#666}b.shown{background:#17703c}b.not{background:#a61b1b}
code{overflow-wrap:anywhere}:root{color-scheme:light dark}
svg{display:block;width:100%;max-width:30rem;height:auto;overflow:visible;font:13px system-ui,sans-serif}
svg text{fill:currentColor}.gr{stroke:#8884}.ax{stroke:currentColor}.hit{fill:transparent}
.s0{--c:#0f7ac4}.s1{--c:#d2661d}.s2{--c:#0c9670}.s3{--c:#b84f96}.s4{--c:#9a7416}.s5{--c:#3f7fe0}.s6{--c:#6b7785}.s7{--c:#96463a}
.ln{fill:none;stroke:var(--c);stroke-width:2.2}.mk{fill:var(--c)}
.thin .ln{stroke-width:1.3;stroke-dasharray:5 3}.thin .mk{fill:Canvas;stroke:var(--c);stroke-width:1.5}
</style></head><body>
<h1>{{.Title}}</h1><p>{{.Source}}</p><p>{{.Machine}}</p><p>{{.Summary}}</p><p>{{.Labels}}</p>
{{range .Claims}}<section id="{{.ID}}"><h2>{{.ID}} <b class="{{.Class}}">{{.Verdict}}</b> {{.Says}}</h2>
<p>{{.Source}}{{with .Label}} · measured: {{.}}{{end}}{{with .Reason}} · {{.}}{{end}}</p>
<table><tr><th>published</th><th>here</th></tr><tr><td>{{range .Published}}{{.}}<br>{{else}}–{{end}}</td>
<td>{{range .Findings}}{{.Line}}<br>{{else}}–{{end}}</td></tr></table>
{{$c := .ID}}{{range $i, $t := .Tables}}<p>{{.What}}</p>{{.Chart (printf "%s-%d" $c $i)}}<table class="curve"><tr>{{range .Head}}<th>{{.}}</th>{{end}}</tr>
{{range .Rows}}<tr>{{range .}}<td>{{.}}</td>{{end}}</tr>{{end}}</table>{{end}}
<details><summary>Repeat it</summary><p><code>rdmaperf reproduce {{$.Paper}} --only {{.ID}}</code></p>
{{range .Commands}}<p><code>{{.}}</code></p>{{end}}</details></section>
{{end}}</body></html>
`))
