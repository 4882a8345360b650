package reports

// SureLatency is the result's, empty where it has none.
func (r *Result) SureLatency() *Latency {
	if r.Latency == nil {
		return &Latency{}
	}
	return r.Latency
}

// BothCPU is the processor time of both sides in seconds. In one process each side
// names that of the process.
func (r *Result) BothCPU() float64 {
	if r.Label == LabelMem {
		return r.CPU.ClientSeconds
	}
	return r.CPU.ClientSeconds + r.CPU.ServerSeconds
}
