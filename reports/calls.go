package reports

// BothCPU is the processor time of both sides in seconds. In one process each side
// names that of the process.
func (r *Result) BothCPU() float64 {
	if r.Label == LabelMem {
		return r.CPU.ClientSeconds
	}
	return r.CPU.ClientSeconds + r.CPU.ServerSeconds
}
