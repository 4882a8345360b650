package verdict

type control struct {
	at    int     // how many measurements had been taken again before it
	pace  float64 // its value as a part of the pair's first, at most 1
	class string
}

// AddControl takes a further measurement of a good pair: what is bad next to it must be bad at its pace, too.
func (m *Measure) AddControl(p Pair, v float64) {
	if len(m.Values[p]) == 0 || v == m.Failed() {
		return
	}
	pace := m.Values[p][0] / v
	if m.More {
		pace = 1 / pace
	}
	m.controls = append(m.controls, control{m.again, min(pace, 1), m.class(p)})
}

func (m *Measure) pace(p Pair, i int) float64 {
	if i == 0 || len(m.controls) == 0 {
		return 1
	}
	pace := 1.0
	for _, c := range m.controls {
		switch {
		case c.class != m.class(p):
		case c.at <= m.order[p][i-1]:
			pace = c.pace
		default:
			return min(pace, c.pace)
		}
	}
	return pace
}

// Control is a good pair to measure between those that are measured again, of ranks with the fewest bad pairs; false
// where there is none.
func Control(measures []*Measure, again []Link) (best Link, ok bool) {
	if len(again) == 0 {
		return best, false
	}
	known, out, bad := map[Link]bool{}, map[Link]bool{}, map[int]int{}
	for _, l := range again {
		out[l] = true
	}
	for _, m := range measures {
		for l, is := range m.judge(true).links {
			known[l] = true
			if is {
				out[l] = true
				bad[l.A]++
				bad[l.B]++
			}
		}
	}
	class := func(l Link) string { return measures[0].class(Pair{l.A, l.B}) }
	for _, l := range sortedLinks(known) {
		if out[l] || class(l) != class(again[0]) {
			continue
		}
		if !ok || bad[l.A]+bad[l.B] < bad[best.A]+bad[best.B] {
			best, ok = l, true
		}
	}
	return best, ok
}
