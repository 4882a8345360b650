// Package verdict says from figures of pairs which host, direction, path or block of a mesh is slow. It is pure.
package verdict

import (
	"cmp"
	"math"
	"slices"
)

// Pair is one direction: From sends, or asks.
type Pair struct{ From, To int }

// Link is the pair without its direction.
func (p Pair) Link() Link { return LinkOf(p.From, p.To) }

// Measure is one figure of the pairs of a mesh.
type Measure struct {
	Name  string // latency or bandwidth
	Stack string
	More  bool // more is better
	Whole bool // a ping-pong: the figure is of both directions
	Limit float64

	// Values are by pair the first measurement and those taken again; a failed pair has the worst value that there is.
	Values map[Pair][]float64

	// doubt is the share of a measurement's time with CPU contention: it must be bad without that, too.
	doubt    map[window]float64
	again    int            // how many measurements were taken again
	order    map[Pair][]int // by pair which of them these are
	controls []control      // in order

	// Class tells pairs apart that are not to be compared, such as those within a host; nil: all are equal.
	Class func(Pair) string
}

type window struct {
	Pair
	measurement int
}

// Failed is the value of a pair that could not be measured.
func (m *Measure) Failed() float64 {
	if m.More {
		return 0
	}
	return math.Inf(1)
}

// Add takes one measurement.
func (m *Measure) Add(p Pair, v float64) {
	if m.Values == nil {
		m.Values, m.order = map[Pair][]float64{}, map[Pair][]int{}
	}
	if len(m.Values[p]) > 0 {
		m.order[p] = append(m.order[p], m.again)
		m.again++
	}
	m.Values[p] = append(m.Values[p], v)
}

// AddDoubtful takes one for a share of which, from 0 to 1, others took the processors of its ends.
func (m *Measure) AddDoubtful(p Pair, v, share float64) {
	if m.doubt == nil {
		m.doubt = map[window]float64{}
	}
	m.doubt[window{p, len(m.Values[p])}] = share
	m.Add(p, v)
}

// preempted is how many times slower an end is that others take processors from, as its caches are cold.
const preempted = 2

// atBest is what a measurement may have been without the time that others took, and at the pace of the first ones.
func (m *Measure) atBest(p Pair, i int) float64 {
	left := m.pace(p, i)
	if share, doubtful := m.doubt[window{p, i}]; doubtful {
		left *= (1 - share) * (1 - share) / preempted
	}
	if m.More {
		return m.Values[p][i] / left
	}
	return m.Values[p][i] * left
}

type judged struct {
	*Measure
	doubts    bool               // doubtful measurements count, too
	reference map[string]float64 // by class
	bad       map[Pair]bool      // of each pair that was measured
	links     map[Link]bool      // bad where one of its directions is
	partners  map[int][]int      // by rank
}

// references are by class the value of the best tenth: where one rank of four is slow, half of the pairs are.
func (m *Measure) references() map[string]float64 {
	all := map[string][]float64{}
	for p, v := range m.Values {
		all[m.class(p)] = append(all[m.class(p)], v[0])
	}
	of := map[string]float64{}
	for class, v := range all {
		slices.Sort(v)
		if m.More {
			slices.Reverse(v)
		}
		of[class] = v[(len(v)+9)/10-1]
	}
	return of
}

func (m *Measure) class(p Pair) string {
	if m.Class == nil {
		return ""
	}
	return m.Class(p)
}

// judge calls a pair bad whose measurements are beyond the limit, a multiple of the reference: of those taken again
// more than half, or the first and a sixth of many connections, or else the first.
func (m *Measure) judge(doubts bool) *judged {
	j := &judged{m, doubts, m.references(), map[Pair]bool{}, map[Link]bool{}, map[int][]int{}}
	for p := range m.Values {
		bad, of := j.count(p)
		j.bad[p] = 2*bad > of || m.swept(p) && 6*bad >= of && j.beyond(p, m.Values[p][0])
		l := p.Link()
		if _, known := j.links[l]; !known {
			j.partners[l.A] = append(j.partners[l.A], l.B)
			j.partners[l.B] = append(j.partners[l.B], l.A)
		}
		j.links[l] = j.links[l] || j.bad[p]
	}
	for _, list := range j.partners {
		slices.Sort(list)
	}
	return j
}

// Connections is how many a path is tried by that no host or block explains: each may take another of several equal
// paths. 32 connections take all of five paths with 99 %.
const Connections = 32

// Some of them are tried at a time: a path that is slow on each of the first has no equal one.
const Some = 8

func (m *Measure) swept(p Pair) bool { return len(m.Values[p]) > Connections }

// Typical is the median of the measurements of a pair that are no doubt; false without any.
func (m *Measure) Typical(p Pair) (float64, bool) {
	var v []float64
	for i, x := range m.Values[p] {
		if m.doubt[window{p, i}] == 0 {
			v = append(v, x)
		}
	}
	if len(v) == 0 {
		return 0, false
	}
	slices.Sort(v)
	return v[len(v)/2], true
}

// Bad are the pairs that are beyond the limit, doubtful ones, too.
func (m *Measure) Bad() map[Pair]bool { return m.judge(true).bad }

func (j *judged) beyond(p Pair, v float64) bool {
	ref := j.reference[j.class(p)]
	if j.More {
		return v < ref*j.Limit
	}
	return v > ref*j.Limit
}

// Ranked is a pair with the median of its measurements, and how many times worse it is; infinite where it failed.
type Ranked struct {
	Pair
	Value, Factor float64
}

// Worst are all pairs, the worst first.
func (m *Measure) Worst() (all []Ranked) {
	j := m.judge(true)
	for p := range m.Values {
		r := Ranked{p, j.value(p), 0}
		if ref := j.reference[j.class(p)]; m.More {
			r.Factor = ref / r.Value
		} else {
			r.Factor = r.Value / ref
		}
		all = append(all, r)
	}
	slices.SortFunc(all, func(a, b Ranked) int {
		return cmp.Or(-cmp.Compare(a.Factor, b.Factor), cmp.Compare(a.From, b.From), cmp.Compare(a.To, b.To))
	})
	return all
}

// count is how many of the measurements that count are bad.
func (j *judged) count(p Pair) (bad, of int) {
	for i, x := range j.Values[p] {
		is := j.beyond(p, x)
		if i == 0 && len(j.Values[p]) > 1 || is && !j.doubts && !j.beyond(p, j.atBest(p, i)) {
			continue
		}
		if of++; is {
			bad++
		}
	}
	return bad, of
}

// value is the median of the measurements that count.
func (j *judged) value(p Pair) float64 {
	v := slices.Clone(j.Values[p])
	if len(v) > 1 {
		v = v[1:]
	}
	slices.Sort(v)
	return v[len(v)/2]
}

func (j *judged) badLinks() []Link {
	return slices.DeleteFunc(sortedLinks(j.links), func(l Link) bool { return !j.links[l] })
}

// mostAgain bounds how many of a rank's bad pairs are measured again; the others are explained by these.
const mostAgain = 8

// fewPartners is from how many partners on a host can be told from a path.
const fewPartners = 3

// Again are the bad pairs, and for a rank of one that has met few others pairs with ranks that have no bad pair.
func Again(ranks int, measures []*Measure) []Link {
	var links []Link
	known, bad := map[Link]bool{}, map[int]bool{}
	for _, m := range measures {
		j := m.judge(true)
		count := map[int]int{}
		for l := range j.links {
			known[l] = true
		}
		for _, l := range j.badLinks() {
			bad[l.A], bad[l.B] = true, true
			if count[l.A] < mostAgain && count[l.B] < mostAgain && !slices.Contains(links, l) {
				links = append(links, l)
			}
			count[l.A]++
			count[l.B]++
		}
	}
	partners := map[int]int{}
	for l := range known {
		partners[l.A]++
		partners[l.B]++
	}
	again := slices.Clone(links)
	for _, l := range links {
		for _, r := range []int{l.A, l.B} {
			for step := 1; step < ranks && partners[r] < fewPartners; step++ {
				good := (r + step) % ranks
				if x := LinkOf(r, good); !bad[good] && !known[x] {
					known[x] = true
					partners[r]++
					again = append(again, x)
				}
			}
		}
	}
	return again
}

// Sweep are the pairs that were bad again and that neither a host nor a block explains.
func Sweep(measures []*Measure) (links []Link) {
	explained := map[int]bool{}
	for _, f := range Of(measures) {
		if f.Kind != Path && f.Kind != Way {
			for _, r := range slices.Concat(f.Ranks, f.To) {
				explained[r] = true
			}
		}
	}
	for _, m := range measures {
		j := m.judge(false)
		for _, l := range sortedLinks(j.links) {
			again := false
			for _, p := range []Pair{{l.A, l.B}, {l.B, l.A}} {
				bad, of := j.count(p)
				again = again || len(m.Values[p]) > 1 && bad > 0 && !m.swept(p) && (bad < of || of < Some)
			}
			if again && !explained[l.A] && !explained[l.B] && !slices.Contains(links, l) && len(links) < mostSwept {
				links = append(links, l)
			}
		}
	}
	return links
}

// mostSwept bounds the time of a mesh in which much is slow by chance.
const mostSwept = 4
