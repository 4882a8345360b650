package results

import (
	"fmt"
	"slices"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/mesh/verdict"
	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/reports/view"
)

// Worse says of two meshes of the same ranks what became worse, a line each; nil where one of them is no mesh. The
// figure of a pair is its new value by its old one, judged by the limits of the new mesh.
func Worse(old, new *reports.Document) (lines []string) {
	a, b := Summarise(old.Results), Summarise(new.Results)
	if a == nil || b == nil {
		return nil
	}
	var changes []*verdict.Measure
	for _, m := range b.Measures {
		i := slices.IndexFunc(a.Measures, func(o *verdict.Measure) bool { return o.Name == m.Name && o.Stack == m.Stack })
		if i < 0 {
			continue
		}
		change := &verdict.Measure{Name: m.Name, Stack: m.Stack, More: m.More, Whole: m.Whole, Limit: m.Limit}
		var all []float64
		for p := range m.Values {
			was, known := a.Measures[i].Typical(p)
			is, measured := m.Typical(p)
			if !known || !measured || was == 0 {
				continue
			}
			change.Add(p, is/was)
			change.Add(p, is/was) // all that there is of a pair agrees
			all = append(all, is/was)
		}
		if len(all) == 0 {
			continue
		}
		changes = append(changes, change)
		slices.Sort(all)
		if middle := all[len(all)/2]; m.More && middle < m.Limit || !m.More && middle > m.Limit {
			lines = append(lines, fmt.Sprintf("%s over %s: the median pair has %.2gx of before", m.Name,
				view.Printable(m.Stack), middle))
		}
	}
	found := verdict.Of(changes)
	for i := range found {
		f := &found[i]
		line := "became worse: " + b.subject(f)
		for _, e := range f.Evidence {
			line += fmt.Sprintf("; %s over %s %.2gx of before, with %d of %d", e.Measure.Name,
				view.Printable(e.Measure.Stack), e.Value, e.Bad, e.Of)
		}
		lines = append(lines, line)
	}
	if len(changes) > 0 && len(lines) == 0 {
		lines = []string{"no host, direction, path or block of the mesh became worse"}
	}
	return lines
}

func (s *Summary) subject(f *verdict.Finding) string {
	a := s.list(f.Ranks)
	switch f.Kind {
	case verdict.Host:
		return a + ", both directions"
	case verdict.Sends:
		return "what " + a + " sends"
	case verdict.Takes:
		return "what " + a + " receives"
	case verdict.Way:
		return "the direction from " + a + " to " + s.list(f.To)
	case verdict.Block:
		return "the paths between " + a + " and " + s.list(f.To)
	}
	return "the path between " + a + " and " + s.list(f.To)
}
