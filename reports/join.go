package reports

import (
	"errors"
	"fmt"

	"github.com/rdmaperf/rdmaperf/reports/view"
)

// oneSample has one result for the rounds of each point, which share the machine's pace.
func oneSample(results []Result) (out []Result) {
	for _, s := range collectSamples(results) {
		if rounds(s.results) {
			r := *medianResult(s.results)
			r.Repeat = 0
			out = append(out, r)
			continue
		}
		for _, r := range s.results {
			out = append(out, *r)
		}
	}
	return out
}

// Join makes one run of several invocations of the same command, so that Compare takes each as a sample. They must come
// from the same build on the same machine. The first error is the whole run's. The documents are only read.
func Join(docs []*Document) (*Document, error) {
	if len(docs) == 0 {
		return nil, errors.New("join: no document")
	}
	joined := *docs[0]
	joined.Results, joined.Repeats, joined.Answer = nil, nil, nil // the summaries are of one invocation each
	for i, d := range docs {
		c := Comparison{}
		c.environments("", &docs[0].Environment, &d.Environment)
		a, b := docs[0].ServerEnvironment, d.ServerEnvironment
		if a != nil && b != nil {
			c.environments("server ", a, b)
		}
		switch {
		case docs[0].Environment.Version != d.Environment.Version, docs[0].Environment.Go != d.Environment.Go:
			return nil, fmt.Errorf("join: document %d is of rdmaperf %s, %s, the first of %s, %s", i+1,
				view.Printable(d.Environment.Version), view.Printable(d.Environment.Go),
				view.Printable(docs[0].Environment.Version), view.Printable(docs[0].Environment.Go))
		case (a == nil) != (b == nil):
			return nil, fmt.Errorf("join: document %d and the first differ in where the server was", i+1)
		case len(c.Unlike) > 0:
			return nil, fmt.Errorf("join: document %d is not like the first: %s", i+1, c.Unlike[0])
		}
		if joined.Error == nil {
			joined.Error = d.Error
		}
		joined.Results = append(joined.Results, oneSample(d.Results)...)
	}
	return &joined, nil
}
