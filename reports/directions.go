package reports

// Streamed tells whether the throughput says something of its own: the rate of a
// ping-pong does not, and that of connections has a table of its own.
func (r *Result) Streamed() bool {
	k := r.AnyKind()
	return r.Throughput != nil && !k.OwnRate && !(k.PingPong && r.Latency != nil)
}

// Direction is one row of a throughput: the whole, or a part by its name.
type Direction struct {
	Name string
	*Result
}

// Directions are the rows of a result in a throughput table: one, or each
// direction and the sum.
func (r *Result) Directions() []Direction {
	if f := r.AnyKind().Directions; f != nil {
		if parts := f(r); len(parts) > 0 {
			return append(parts, Direction{"sum", r})
		}
	}
	return []Direction{{"", r}}
}
