package results

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/mesh/verdict"
	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/reports/view"
)

// Summary is what the results of a mesh show.
type Summary struct {
	Ranks     []int    // those that measured something, in order
	Names     []string // by rank: the host, and behind it the rank where a host has several
	Hosts     int
	Links     int // pairs
	Failed    int // of these, without a figure, and not for want of a rank
	Windows   int // measurements
	Contended int // of these, beside others who used the processors
	Measures  []*verdict.Measure
	Findings  []verdict.Finding

	Allreduces []*reports.Result

	switches []string // by rank
}

// Summarise reads the results of a mesh; nil where there are none.
func Summarise(all []reports.Result) *Summary {
	s := &Summary{}
	var hosts []string
	seen, links := map[int]bool{}, map[verdict.Link]bool{}
	same := map[verdict.Link]bool{}
	for i := range all {
		r := &all[i]
		d := reports.DetailOf[Mesh](r)
		if d != nil && d.Measure == Allreduce {
			s.Allreduces = append(s.Allreduces, r)
			continue
		}
		if d == nil || d.Gone || d.From < 0 || d.To < 0 || d.From == d.To || d.From > maxRank || d.To > maxRank {
			continue
		}
		for _, end := range []struct {
			rank        int
			host, hangs string
		}{{d.From, d.FromHost, d.FromSwitch}, {d.To, d.ToHost, d.ToSwitch}} {
			for len(hosts) <= end.rank {
				hosts, s.switches = append(hosts, ""), append(s.switches, "")
			}
			if !seen[end.rank] {
				seen[end.rank] = true
				s.Ranks = append(s.Ranks, end.rank)
			}
			hosts[end.rank], s.switches[end.rank] = end.host, end.hangs
		}
		link := verdict.LinkOf(d.From, d.To)
		links[link], same[link] = true, d.SameHost
		s.measure(r, d, same)
	}
	if len(links) == 0 && len(s.Allreduces) == 0 {
		return nil
	}
	slices.Sort(s.Ranks)
	s.Links = len(links)
	count := map[string]int{}
	for _, r := range s.Ranks {
		count[hosts[r]]++
	}
	s.Hosts = len(count)
	s.Names = hosts
	for _, r := range s.Ranks {
		if s.Names[r] = view.Printable(hosts[r]); count[hosts[r]] > 1 {
			s.Names[r] = fmt.Sprintf("rank %d", r)
		}
	}
	s.Findings = verdict.Of(s.Measures)
	return s
}

// contended is the part of a window with CPU contention from which its figure is doubtful.
const contended = 0.1

// maxRank bounds what a document can ask for.
const maxRank = 1 << 20

func (s *Summary) measure(r *reports.Result, d *Mesh, same map[verdict.Link]bool) {
	stack := reports.TransportOf(r)
	i := slices.IndexFunc(s.Measures, func(m *verdict.Measure) bool { return m.Name == d.Measure && m.Stack == stack })
	if i < 0 {
		i = len(s.Measures)
		s.Measures = append(s.Measures, &verdict.Measure{Name: d.Measure, Stack: stack, More: More(d.Measure),
			Whole: Whole(d.Measure), Limit: d.Limit, Class: func(p verdict.Pair) string {
				if same[p.Link()] {
					return "within hosts"
				}
				return "between hosts"
			}})
	}
	m := s.Measures[i]
	v := m.Failed()
	switch {
	case d.Failed != "":
		s.Failed++
	case m.More && r.Throughput != nil:
		v = r.Throughput.BytesPerSecond
	case !m.More && r.Latency != nil:
		v = r.Latency.P50
	}
	s.Windows++
	p := verdict.Pair{From: d.From, To: d.To}
	if d.Control {
		m.AddControl(p, v)
		return
	}
	if d.Failed == "" && r.Disturbance.Share() > contended {
		s.Contended++
		m.AddDoubtful(p, v, min(r.Disturbance.Share(), 1))
		return
	}
	m.Add(p, v)
}

// Sentence says what a finding is, without a full stop.
func (s *Summary) Sentence(f *verdict.Finding) string {
	what := s.subject(f)
	switch f.Kind {
	case verdict.Host:
		return s.list(f.Ranks) + " is slow in both directions"
	case verdict.Sends:
		return s.list(f.Ranks) + " sends slowly"
	case verdict.Takes:
		return s.list(f.Ranks) + " receives slowly"
	case verdict.Block:
		return what + " are slow"
	}
	switch e := &f.Evidence[0]; {
	case e.Times >= verdict.Some && e.Again == e.Times:
		return fmt.Sprintf("%s is slow on each of %d connections", what, e.Times)
	case e.Times >= verdict.Connections:
		return fmt.Sprintf("%s is slow on %d of %d connections, as if one of several equal paths were", what, e.Again,
			e.Times)
	}
	return what + " is slow"
}

// Evidence is a line for each measure that shows it.
func (s *Summary) Evidence(f *verdict.Finding) (lines []string) {
	for i := range f.Evidence {
		e := &f.Evidence[i]
		what := view.NsLabel
		if e.Measure.More {
			what = view.BandwidthLabel
		}
		value := "no figure"
		if e.Value > 0 && !math.IsInf(e.Value, 0) {
			value = fmt.Sprintf("%s, %.2gx of the %s of good pairs", what(e.Value), e.Value/e.Healthy, what(e.Healthy))
		}
		line := fmt.Sprintf("%s over %s: %s", e.Measure.Name, view.Printable(e.Measure.Stack), value)
		if e.Of > 1 {
			line += fmt.Sprintf(", with %d of %d", e.Bad, e.Of)
		}
		if e.Times > 0 {
			line += fmt.Sprintf(", %d of %d times again", e.Again, e.Times)
		}
		lines = append(lines, line)
	}
	return lines
}

const mostNames = 6

func (s *Summary) list(ranks []int) string {
	if name := s.commonSwitch(ranks); name != "" {
		return fmt.Sprintf("switch %s (%s)", name, view.Plural(int64(len(ranks)), "rank"))
	}
	var names []string
	for _, r := range ranks[:min(len(ranks), mostNames)] {
		names = append(names, s.Names[r])
	}
	if more := len(ranks) - len(names); more > 0 {
		names = append(names, fmt.Sprintf("%d more", more))
	}
	if n := len(names); n > 1 {
		return strings.Join(names[:n-1], ", ") + " and " + names[n-1]
	}
	return strings.Join(names, "")
}

func (s *Summary) commonSwitch(ranks []int) string {
	if len(ranks) < 2 {
		return ""
	}
	parts := strings.Split(s.switches[ranks[0]], ".")
	for n := len(parts); n > 0 && parts[0] != ""; n-- {
		prefix := strings.Join(parts[:n], ".")
		var below []int
		for _, r := range s.Ranks {
			if at := s.switches[r]; at == prefix || strings.HasPrefix(at, prefix+".") {
				below = append(below, r)
			}
		}
		if slices.Equal(below, ranks) {
			return view.Printable(parts[n-1])
		}
	}
	return ""
}

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
