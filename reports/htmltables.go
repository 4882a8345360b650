package reports

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// resultTables lists every figure, one table for what may be compared.
func resultTables(set *sampleSet) []htmlTable {
	var out []htmlTable
	for _, g := range groupBy(set.samples, func(s *sample) (condition, bool) { return s.condition(), true }) {
		caption := g.key.title()
		latency := htmlTable{Caption: caption + ": latency [µs]", Note: g.key.describe(),
			Head: headCells("stack", "size", "samples", "min", "p50", "p90", "p99", "p99.9", "p99.99", "max", "mean", "stddev")}
		rate := htmlTable{Caption: caption + ": throughput", Note: g.key.describe(),
			Head: headCells("stack", "size", "operations", "seconds", "MiB/s", "Gb/s", "op/s")}
		work := htmlTable{Caption: caption + ": what each figure rests on", Note: g.key.describe(),
			Head: headCells("stack", "size", "label", "operations", "errors", "verified", "seconds", "CPU client [s]", "CPU server [s]", "GCs", "allocations", "measured by")}
		peaks := slices.ContainsFunc(g.samples, func(s *sample) bool { return s.Throughput != nil && s.Throughput.PeakOverNs > 0 })
		if peaks {
			rate.Head = append(rate.Head, headCells("peak MiB/s", "peak over [ms]")...)
		}
		for _, s := range g.samples {
			for _, st := range connectStages {
				if l := st.latency(s.Result); l != nil {
					latency.Rows = append(latency.Rows, latencyRow(s, ", "+st.title, l))
				}
			}
			for _, l := range []struct {
				name string
				of   *Latency
			}{{"", s.Latency}, {", corrected", s.LatencyCorrected}, {", service time", s.LatencyService}, {", probe alone", s.probe(false)}, {", probe loaded", s.probe(true)}} {
				if l.of != nil {
					latency.Rows = append(latency.Rows, latencyRow(s, l.name, l.of))
				}
			}
			for _, d := range s.directions() {
				t := d.Throughput
				if t == nil {
					continue
				}
				name := s.name()
				if d.name != "" {
					name += ", " + d.name
				}
				row := []htmlCell{nameCell(name), numberCell(sizeLabel(s.SizeBytes)), numberCell(integer(d.Operations)),
					numberCell(number(float64(d.DurationNs)/1e9, 2)), numberCell(bandwidth(t.BytesPerSecond, false)), numberCell(bandwidth(t.BytesPerSecond, true)),
					numberCell(number(t.OperationsPerSecond, 0))}
				if peaks {
					row = append(row, peakCells(t)...)
				}
				rate.Rows = append(rate.Rows, row)
			}
			work.Rows = append(work.Rows, workRow(s))
		}
		for _, t := range []htmlTable{latency, rate, incastShares(g.key, g.samples), callTable(g.key, g.samples), intervalTable(g.key, g.samples), rawTable(g.key, g.samples), work, counterTable(g.key, g.samples)} {
			if len(t.Rows) > 0 {
				out = append(out, t)
			}
		}
	}
	return out
}

// peakCells are the best part of a window and its length.
func peakCells(t *Throughput) []htmlCell {
	if t.PeakOverNs < 1 {
		return []htmlCell{numberCell("-"), numberCell("-")}
	}
	return []htmlCell{numberCell(bandwidth(t.PeakBytesPerSecond, false)), numberCell(number(float64(t.PeakOverNs)/1e6, -1))}
}

// probe is one distribution of a head-of-line result.
func (s *sample) probe(loaded bool) *Latency {
	switch {
	case s.HOL == nil:
		return nil
	case loaded:
		return &s.HOL.ProbeLoaded
	}
	return &s.HOL.ProbeAlone
}

func latencyRow(s *sample, what string, l *Latency) []htmlCell {
	size := s.SizeBytes
	if s.HOL != nil {
		size = s.HOL.ProbeSizeBytes
	}
	row := []htmlCell{nameCell(s.name() + what), numberCell(sizeLabel(size)), numberCell(integer(l.Count)), numberCell(usec(l.Min))}
	for _, p := range l.Percentiles()[:5] {
		row = append(row, htmlCell{Text: usec(p.Ns), Class: "n", Mark: p.TooFew})
	}
	return append(row, numberCell(usec(l.Max)), numberCell(usec(l.Mean)), numberCell(usec(l.StdDev)))
}

func workRow(s *sample) []htmlCell {
	failed := htmlCell{Text: integer(s.Errors), Class: "n"}
	if s.Errors > 0 {
		failed.Class = "n bad"
	}
	verified := htmlCell{Text: "✓ yes", Class: "good"}
	if !s.Verified {
		verified = htmlCell{Text: "! no", Class: "warn"}
	}
	client, server, collections, allocations := "-", "-", "-", "-"
	if s.CPU != nil {
		client, server = number(s.CPU.ClientSeconds, 2), number(s.CPU.ServerSeconds, 2)
	}
	if s.GC != nil {
		collections = integer(s.GC.ClientCollections + s.GC.ServerCollections)
		allocations = integer(s.GC.ClientAllocations + s.GC.ServerAllocations)
	}
	return []htmlCell{nameCell(s.name()), numberCell(sizeLabel(s.SizeBytes)), textCell(s.Label), numberCell(integer(s.Operations)), failed, verified,
		numberCell(number(float64(s.DurationNs)/1e9, 2)), numberCell(client), numberCell(server), numberCell(collections), numberCell(allocations), textCell(s.MeasuredBy)}
}

// runView is how one document came about.
type runView struct {
	Name, Command, Hint string
	Environment         htmlTable
	Server              *htmlTable
	Options             htmlTable  // the same for all results
	Varying             *htmlTable // one row a result
}

func newRunView(d *Document, name string) runView {
	v := runView{Name: visible(name), Command: visible(shellLine(d.Command)), Environment: pairsTable("Environment of the client", flatten(d.Environment))}
	if d.Error != nil {
		v.Hint = visible(d.Error.Hint)
	}
	if d.ServerEnvironment != nil {
		t := pairsTable("Environment of the server", flatten(*d.ServerEnvironment))
		v.Server = &t
	}
	options := make([]map[string]string, len(d.Results))
	var keys []string
	for i := range d.Results {
		options[i] = map[string]string{}
		for _, kv := range flatten(d.Results[i].Parameters) {
			options[i][kv[0]] = kv[1]
			keys = append(keys, kv[0])
		}
	}
	slices.Sort(keys)
	keys = slices.Compact(keys)
	var same [][2]string
	var differ []string
	for _, k := range keys {
		first, all := options[0][k], true
		for _, o := range options {
			value, present := o[k]
			all = all && present && value == first
		}
		if all {
			same = append(same, [2]string{k, first})
		} else {
			differ = append(differ, k)
		}
	}
	v.Options = pairsTable("Options that all results share", same)
	if len(differ) > 0 {
		t := htmlTable{Caption: "Options that differ between results", Head: headCells(append([]string{"result"}, differ...)...)}
		for i := range d.Results {
			r := &d.Results[i]
			row := []htmlCell{nameCell(fmt.Sprintf("%s, %s, %s", r.Stack, strings.TrimSpace(r.Workload+" "+r.Op), sizeLabel(r.SizeBytes)))}
			for _, k := range differ {
				row = append(row, textCell(options[i][k]))
			}
			t.Rows = append(t.Rows, row)
		}
		v.Varying = &t
	}
	return v
}

func pairsTable(caption string, pairs [][2]string) htmlTable {
	t := htmlTable{Caption: caption, Head: headCells("name", "value")}
	for _, kv := range pairs {
		t.Rows = append(t.Rows, []htmlCell{nameCell(kv[0]), textCell(kv[1])})
	}
	return t
}

// flatten lists every leaf of a value's JSON form by its path, sorted.
func flatten(v any) [][2]string {
	b, err := json.Marshal(v)
	if err != nil {
		return [][2]string{{"options", "cannot be shown: " + err.Error()}}
	}
	var tree any
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber() // 2^53 and more must not be rounded
	if err := d.Decode(&tree); err != nil {
		return [][2]string{{"options", "cannot be shown: " + err.Error()}}
	}
	var out [][2]string
	walk(&out, "", tree)
	slices.SortFunc(out, func(a, b [2]string) int { return strings.Compare(a[0], b[0]) })
	return out
}

func walk(out *[][2]string, path string, v any) {
	switch v := v.(type) {
	case map[string]any:
		for k, child := range v {
			if path != "" {
				k = path + "." + k
			}
			walk(out, k, child)
		}
	case []any:
		parts := make([]string, len(v))
		for i, child := range v {
			var leaf [][2]string
			walk(&leaf, "", child)
			for _, kv := range leaf {
				parts[i] = strings.TrimSpace(parts[i] + " " + strings.TrimSpace(kv[0]+" "+kv[1]))
			}
		}
		*out = append(*out, [2]string{path, strings.Join(parts, ", ")})
	case nil:
	default:
		*out = append(*out, [2]string{path, fmt.Sprint(v)})
	}
}

// shellLine quotes a command for a POSIX shell.
func shellLine(argv []string) string {
	quoted := make([]string, len(argv))
	for i, a := range argv {
		if a != "" && strings.Trim(a, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./:=,+@%") == "" {
			quoted[i] = a
			continue
		}
		quoted[i] = "'" + strings.ReplaceAll(a, "'", `'\''`) + "'"
	}
	return strings.Join(quoted, " ")
}
