package reports

import "slices"

// Streamed tells whether the throughput says something of its own: the rate of a ping-pong does not.
func (r *Result) Streamed() bool {
	return r.Throughput != nil && slices.ContainsFunc(r.ShownFigures(),
		func(f Figure) bool { return f.Name == "bw" || f.Name == "rate" })
}
