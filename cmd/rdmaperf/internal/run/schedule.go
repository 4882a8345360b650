package run

import "time"

// schedule divides the announced time among the groups of points. On a busy machine later rounds of each group are left
// out, so that every group has about as many.
type schedule struct {
	end    time.Time
	shares []time.Duration // planned for each group
}

func newSchedule(m *runner, groups []group, total time.Duration) schedule {
	s := schedule{end: time.Now().Add(total - allStart)}
	for _, g := range groups {
		s.shares = append(s.shares, m.planned(g))
	}
	return s
}

// until is when group i has to be done, which begins now: its part of the time that is left.
func (s schedule) until(i int, now time.Time) time.Time {
	rest := time.Duration(0)
	for _, d := range s.shares[i:] {
		rest += d
	}
	if rest == 0 {
		return s.end
	}
	part := float64(s.shares[i]) / float64(rest)
	return now.Add(time.Duration(part * float64(s.end.Sub(now))))
}

// enough tells, with some rounds done since began, whether the next one would end too late.
func (m *runner) enough(done int, began, now, until time.Time) bool {
	if m.least == 0 || done < m.least {
		return false
	}
	each := now.Sub(began) / time.Duration(done)
	return now.Add(each).After(until)
}
