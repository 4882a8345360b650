package verdict

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
)

// Kind is what a finding is about.
type Kind string

// The kinds.
const (
	Host  Kind = "host"  // both directions of a rank, with most of its partners
	Sends Kind = "sends" // what leaves a rank
	Takes Kind = "takes" // what comes to a rank
	Path  Kind = "path"  // between two ranks that are good with others
	Way   Kind = "way"   // one direction of it, from Ranks to To
	Block Kind = "block" // between two groups of ranks that are good among themselves
)

// Finding is something that is slow.
type Finding struct {
	Kind     Kind
	Ranks    []int
	To       []int // of a path and a block
	Evidence []Evidence
}

// Evidence is what a measure shows of a finding.
type Evidence struct {
	Measure        *Measure
	Value, Healthy float64 // the median of its bad pairs, and the reference
	Bad, Of        int     // pairs
	Again, Times   int     // of the measurements that count, how many were bad
}

// Of names what is slow, the worst first. What several measures show is one finding.
func Of(measures []*Measure) []Finding {
	var all []Finding
	add := func(m *Measure, f Finding) {
		i := slices.IndexFunc(all, func(o Finding) bool { return o.about(f.Ranks, f.To) || o.about(f.To, f.Ranks) })
		if i < 0 {
			all = append(all, f)
			return
		}
		if o := &all[i]; !m.Whole && (o.Kind != f.Kind || !o.about(f.Ranks, f.To)) {
			o.Kind = f.Kind.both()
		}
		all[i].Evidence = append(all[i].Evidence, f.Evidence...)
	}
	for _, whole := range []bool{false, true} {
		for _, m := range measures {
			if m.Whole == whole {
				for _, f := range m.judge(false).attribute() {
					add(m, f)
				}
			}
		}
	}
	order := map[Kind]int{Host: 0, Sends: 1, Takes: 1, Block: 2, Path: 3, Way: 3}
	slices.SortStableFunc(all, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(order[a.Kind], order[b.Kind]), -cmp.Compare(a.Evidence[0].Bad, b.Evidence[0].Bad),
			slices.Compare(a.Ranks, b.Ranks))
	})
	return all
}

func (f *Finding) about(ranks, to []int) bool {
	return slices.Equal(f.Ranks, ranks) && slices.Equal(f.To, to)
}

func (k Kind) both() Kind {
	switch k {
	case Sends, Takes:
		return Host
	case Way:
		return Path
	}
	return k
}

// attribute explains bad pairs by blocks, else by ranks, else by their paths.
func (j *judged) attribute() (found []Finding) {
	left := map[Link]bool{}
	for _, l := range j.badLinks() {
		left[l] = true
	}
	for {
		x, y := j.block(left)
		if x == nil {
			break
		}
		var links []Link
		for _, a := range x {
			for _, b := range y {
				if l := LinkOf(a, b); left[l] {
					links = append(links, l)
					delete(left, l)
				}
			}
		}
		f := Finding{Kind: Block, Ranks: x, To: y, Evidence: j.evidence(links, len(x)*len(y))}
		found = append(found, f)
	}
	named := map[int]bool{}
	for {
		r, links := j.worst(left, named)
		if links == nil {
			break
		}
		named[r] = true
		of := 0
		for _, o := range j.partners[r] {
			if !named[o] {
				of++
			}
		}
		found = append(found, Finding{Kind: j.direction(r, links), Ranks: []int{r}, Evidence: j.evidence(links, of)})
		for _, l := range links {
			delete(left, l)
		}
		for l := range left { // with a rank that is named already
			if l.A == r && named[l.B] || l.B == r && named[l.A] {
				delete(left, l)
			}
		}
	}
	for _, l := range j.badLinks() {
		if left[l] {
			if f, ok := j.path(l); ok {
				found = append(found, f)
			}
		}
	}
	return found
}

// worst is the rank with the greatest share of bad pairs, above a half and of two or more; nil without one.
func (j *judged) worst(left map[Link]bool, named map[int]bool) (rank int, links []Link) {
	most := 0.5
	for _, r := range slices.Sorted(maps.Keys(j.partners)) {
		if named[r] {
			continue
		}
		var bad []Link
		of := 0
		for _, o := range j.partners[r] {
			if named[o] {
				continue
			}
			of++
			if l := LinkOf(r, o); left[l] {
				bad = append(bad, l)
			}
		}
		share := float64(len(bad)) / float64(of)
		if len(bad) >= 2 && (share > most || share == most && links != nil && len(bad) > len(links)) {
			most, rank, links = share, r, bad
		}
	}
	return rank, links
}

// direction is what is slow of a rank: what it sends, what it takes, or both.
func (j *judged) direction(r int, links []Link) Kind {
	out, in := 0, 0
	for _, l := range links {
		o := l.A + l.B - r
		if j.bad[Pair{r, o}] {
			out++
		}
		if j.bad[Pair{o, r}] {
			in++
		}
	}
	switch {
	case j.Whole:
	case 4*in <= out:
		return Sends
	case 4*out <= in:
		return Takes
	}
	return Host
}

// path is a bad pair whose ranks are good with others. As chance makes single pairs bad, all measurements have to
// agree, or many connections to be tried.
func (j *judged) path(l Link) (f Finding, ok bool) {
	there, back := Pair{l.A, l.B}, Pair{l.B, l.A}
	sure := func(p Pair) bool {
		bad, of := j.count(p)
		return j.bad[p] && len(j.Values[p]) > 1 && (bad == of || j.swept(p))
	}
	elsewhere := func(r int) bool {
		return slices.ContainsFunc(j.partners[r], func(o int) bool { return !j.links[LinkOf(r, o)] })
	}
	f = Finding{Kind: Path, Ranks: []int{l.A}, To: []int{l.B}, Evidence: j.evidence([]Link{l}, 1)}
	_, measured := j.bad[back]
	switch {
	case !sure(there) && !sure(back) || !elsewhere(l.A) || !elsewhere(l.B):
		return f, false
	case j.Whole || !measured || sure(there) && sure(back):
	case sure(there) && !j.bad[back]:
		f.Kind = Way
	case sure(back) && !j.bad[there]:
		f.Kind, f.Ranks, f.To = Way, f.To, f.Ranks
	}
	return f, true
}

// block finds two groups of two or more ranks with bad pairs between them, and good ones within each.
func (j *judged) block(left map[Link]bool) (x, y []int) {
	bad := map[int][]int{}
	for _, l := range sortedLinks(left) {
		bad[l.A] = append(bad[l.A], l.B)
		bad[l.B] = append(bad[l.B], l.A)
	}
	ranks := slices.Sorted(maps.Keys(bad))
	for _, r := range ranks {
		there := bad[r]
		x, y := j.mostlyBad(left, ranks, there), []int(nil)
		if len(there) >= 2 && len(x) >= 2 {
			y = j.mostlyBad(left, ranks, x)
		}
		if len(y) < 2 || slices.ContainsFunc(x, func(r int) bool { return slices.Contains(y, r) }) {
			continue
		}
		between, of := j.between(left, x, y)
		inX, ofX := j.between(left, x, x)
		inY, ofY := j.between(left, y, y)
		if between >= 3 && 4*between >= 3*of && ofX+ofY > 0 && 4*(inX+inY) <= ofX+ofY {
			if slices.Compare(x, y) > 0 {
				x, y = y, x
			}
			return x, y
		}
	}
	return nil, nil
}

// mostlyBad are those of the ranks whose pairs with the others are bad for more than half.
func (j *judged) mostlyBad(left map[Link]bool, ranks, others []int) (are []int) {
	for _, r := range ranks {
		if bad, of := j.between(left, []int{r}, others); 2*bad > of {
			are = append(are, r)
		}
	}
	return are
}

func (j *judged) between(left map[Link]bool, x, y []int) (bad, of int) {
	for _, a := range x {
		for _, b := range y {
			l := LinkOf(a, b)
			if _, measured := j.links[l]; !measured || a == b {
				continue
			}
			of++
			if left[l] {
				bad++
			}
		}
	}
	return bad, of
}

func (j *judged) evidence(links []Link, of int) []Evidence {
	e := Evidence{Measure: j.Measure, Bad: len(links), Of: max(of, len(links))}
	var values []float64
	for _, l := range links {
		for _, p := range []Pair{{l.A, l.B}, {l.B, l.A}} {
			if !j.bad[p] {
				continue
			}
			values = append(values, j.value(p))
			e.Healthy = j.reference[j.class(p)]
			if len(j.Values[p]) > 1 {
				bad, times := j.count(p)
				e.Again, e.Times = e.Again+bad, e.Times+times
			}
		}
	}
	slices.Sort(values)
	if len(values) > 0 {
		e.Value = values[len(values)/2]
	}
	return []Evidence{e}
}

func sortedLinks(m map[Link]bool) []Link {
	return slices.SortedFunc(maps.Keys(m), func(x, y Link) int {
		return cmp.Or(cmp.Compare(x.A, y.A), cmp.Compare(x.B, y.B))
	})
}

// String is the finding by the numbers of its ranks.
func (f Finding) String() string {
	if f.To == nil {
		return fmt.Sprintf("%s %v", f.Kind, f.Ranks)
	}
	return fmt.Sprintf("%s %v-%v", f.Kind, f.Ranks, f.To)
}
