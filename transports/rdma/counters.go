package rdma

// Counts are what one layer of a stack counted so far, for reports.
type Counts struct {
	Layer  string           // its name, without parameters: "sched"
	Values map[string]int64 // by name
	Detail bool             // they say how the work was done, not that something was unusual
}

// Counting is what a Device, or a transport over one, is beside that when it counts something: a tier. It belongs to
// the control path, and is the one optional interface of the waist.
type Counting interface {
	// Counts are the layer's own and those of what stands below it, outermost first. It
	// is safe for concurrent use, and costs locks and memory.
	Counts() []Counts
}

// CountsOf is what a layer and all below it count; nil for one that does not.
func CountsOf(layer any) []Counts {
	if c, ok := layer.(Counting); ok {
		return c.Counts()
	}
	return nil
}
