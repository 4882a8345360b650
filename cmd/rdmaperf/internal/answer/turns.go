package answer

import "github.com/rdmaperf/rdmaperf/reports"

// Turns is one document of runs that two sides took in turns, with what it shows: each stack of the one beside the same
// of the other. What a run measured in several rounds is one sample, because its rounds share the machine's pace.
func Turns(names [2]string, rounds [][2]*reports.Document) *reports.Document {
	d := *rounds[0][0]
	d.Results, d.Repeats = nil, nil
	for round, sides := range rounds {
		for i, side := range sides {
			for _, r := range side.Results {
				if variant := variantOf(&r); variant != "" {
					r.Stack, r.Transport = r.Stack+", "+variant, reports.TransportOf(&r)+", "+variant
				}
				r.Repeat, r.Dims = round+1, withVariant(r.Dims, names[i])
				d.Results = append(d.Results, r)
			}
		}
	}
	d.Answer = of(&d, true)
	return &d
}

// withVariant are the dimensions with another variant.
func withVariant(dims []reports.Dim, variant string) []reports.Dim {
	out := []reports.Dim{{Name: variantDim, Value: variant}}
	for _, d := range dims {
		if d.Name != variantDim {
			out = append(out, d)
		}
	}
	return out
}
