package reports

import "strconv"

// A sweep over the number of QPs stands in one table with the number in front, so
// that it reads as a curve from top to bottom.

// sweptLoads are the loads of a document that were measured with several numbers
// of QPs, by what they share.
func sweptLoads(results []Result) map[load]bool {
	first := map[load]int{}
	swept := map[load]bool{}
	for i := range results {
		l, qps := loadOf(&results[i]).acrossQPs(), results[i].QPs
		if n, seen := first[l]; !seen {
			first[l] = qps
		} else if n != qps && results[i].HOL == nil {
			swept[l] = true
		}
	}
	return swept
}

// acrossQPs is what the points of a sweep share. Threads are part of the sweep: it
// may begin with fewer QPs than threads.
func (l load) acrossQPs() load {
	l.qps, l.threads, l.sweep = 0, 0, true
	return l
}

// perRow puts in front what differs from row to row: the offered rate and the QPs.
func (l load) perRow(columns []column) []column {
	var front []column
	if l.arrivals != "" {
		front = append(front, column{name: "rate", unit: "1/sec"})
	}
	if l.sweep {
		front = append(front, column{name: l.connections() + "s"})
	}
	return append(front, columns...)
}

func (g resultGroup) perRowCells(r *Result, cells []cell) []cell {
	var front []cell
	if g.arrivals != "" {
		front = append(front, cell{text: rateText(r.Rate)})
	}
	if g.sweep {
		front = append(front, cell{text: strconv.Itoa(r.QPs)})
	}
	return append(front, cells...)
}

// rowName tells the rows of a table apart, in a sentence.
func (g resultGroup) rowName(r *Result) string {
	name := plural(r.SizeBytes, "byte")
	if r.Rate > 0 {
		name += " at " + rateText(r.Rate) + "/sec"
	}
	if r.Starvation != nil {
		name += ", " + r.Starvation.point()
	}
	if r.ParamServer != nil {
		name += ", " + printable(r.ParamServer.point())
	}
	if g.sweep {
		name += " on " + plural(int64(r.QPs), g.connections())
	}
	return name
}

// mostThreads is what a sweep's conditions say of threads, which its first rows may
// have fewer of.
func (g *groupedResults) mostThreads() string {
	most := 1
	for _, r := range g.results {
		most = max(most, r.Threads)
	}
	if !g.sweep || most == 1 || g.workload == "incast" || g.workload == "connect" {
		return ""
	}
	return ", at most " + plural(int64(most), "thread")
}

// connections is what a workload calls one of its QPs.
func (l load) connections() string {
	switch l.workload {
	case "incast":
		return "client"
	case "connect":
		return "connection"
	}
	if l.rpc != (rpcLoad{}) {
		return "connection"
	}
	return "QP"
}
