package page

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/reports/view"
)

// verdictMark is one thing that a reader must know before believing a figure.
type verdictMark struct{ Kind, Sign, Text string }

func good(text string) verdictMark { return verdictMark{"good", "✓", text} }

func warn(text string) verdictMark { return verdictMark{"warn", "!", text} }

func bad(text string) verdictMark { return verdictMark{"bad", "✕", text} }

func verdictMarks(set *reports.Set, docs []*reports.Document, cases []CaseResult) []verdictMark {
	var out []verdictMark
	for i, d := range docs {
		if e := d.Error; e != nil {
			name := set.DocName(i)
			if name != "" {
				name = " (" + name + ")"
			}
			out = append(out, bad(view.Visible(fmt.Sprintf("Run ended early%s: %s: %s", name, e.Operation, e.Message))))
		}
	}
	var operations, failed, collections, clamped int64
	unverified, few, mem := 0, 0, false
	lowest := len(reports.PercentileTable)
	for _, s := range set.Samples {
		operations += s.Operations
		failed += s.Errors
		if !s.Verified {
			unverified++
		}
		mem = mem || s.Label == reports.LabelMem
		if s.GC != nil {
			collections += s.GC.ClientCollections + s.GC.ServerCollections
		}
		marked := false
		for _, l := range s.Latencies() {
			clamped += l.Clamped
			for i, p := range l.Percentiles() {
				if p.TooFew && l.Count > 0 {
					marked = true
					lowest = min(lowest, i)
				}
			}
		}
		if marked {
			few++
		}
	}
	n := len(set.Samples)
	for _, d := range docs {
		for _, l := range reports.WakeupLines(d) {
			out = append(out, warn(view.Visible(l)))
		}
		for _, l := range reports.DisturbanceLines(d) {
			if m := warn(view.Capital(view.Visible(strings.TrimPrefix(l, "! "))) + "."); !slices.Contains(out, m) {
				out = append(out, m)
			}
		}
	}
	if n > 0 {
		if failed > 0 {
			out = append(out, bad(fmt.Sprintf("%s among %s.", view.Plural(failed, "failed operation"),
				view.Thousands(view.Integer(operations)))))
		} else {
			out = append(out, good(fmt.Sprintf("No errors in %s operations.",
				view.Thousands(view.Integer(operations)))))
		}
		switch {
		case unverified == 0:
			out = append(out, good(comparedText(set)))
		case unverified == n:
			out = append(out, warn("Data was not verified."))
		default:
			out = append(out, warn(fmt.Sprintf("Data was not verified in %d of %d results.", unverified, n)))
		}
	}
	if few > 0 {
		out = append(out, warn(fmt.Sprintf(
			"In %d of %d results some percentiles, from p%s on, rest on too few samples: marked *.", few, n,
			view.TrimZeros(fmt.Sprintf("%.3f", reports.PercentileTable[lowest].Percent)))))
	}
	if mem {
		out = append(out, warn("mem is the in-process reference device, not a network."))
	}
	if collections > 0 {
		out = append(out, warn(fmt.Sprintf("%s inside measured windows.",
			view.Plural(collections, "garbage collection"))))
	}
	if clamped > 0 {
		out = append(out, warn(fmt.Sprintf("%s outside 0..60 s, counted at the limit in percentiles.",
			view.Plural(clamped, "sample"))))
	}
	for _, d := range docs {
		if d.Environment.Hypervisor {
			out = append(out, warn("Measured in a virtual machine: expect noise in the tail."))
			break
		}
	}
	return append(out, conformanceMarks(cases)...)
}

// comparedText says how the data of verified results was compared. A server compares a
// request before it answers.
func comparedText(set *reports.Set) string {
	if slices.ContainsFunc(set.Samples, func(s *reports.Measured) bool { return s.Parameters["compared"] != nil }) {
		return "Data was compared, of long tensors a part in turn."
	}
	var sum reports.Verification
	for _, s := range set.Samples {
		sum.Add(s.Verification)
	}
	switch {
	case sum.Messages == 0:
		return "Data was compared; how much of it is not in the document."
	case sum.Whole >= sum.Messages:
		return "Every byte of every message was compared."
	}
	return "Data was compared: " + sum.String() + "."
}
