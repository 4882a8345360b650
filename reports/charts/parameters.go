package charts

import (
	"slices"
	"strings"
	"time"

	"github.com/rdmaperf/rdmaperf/reports"
)

// parameter is a number among the parameters of a layer in a stack's name; rest is the name without it.
type parameter struct {
	value float64
	typed string
	rest  string
}

// parameterOf reads "slice of sched" out of "sched(strict,slice=16K)+iwarp"; times are nanoseconds, sizes bytes.
func parameterOf(stack, name string) (parameter, bool) {
	key, layer, _ := strings.Cut(name, " of ")
	begin := strings.Index(stack, layer+"(")
	if begin < 0 {
		return parameter{}, false
	}
	begin += len(layer) + 1
	length := strings.IndexByte(stack[begin:], ')')
	if length < 0 {
		return parameter{}, false
	}
	parts := strings.Split(stack[begin:begin+length], ",")
	i := slices.IndexFunc(parts, func(p string) bool { return strings.HasPrefix(strings.TrimSpace(p), key+"=") })
	if i < 0 {
		return parameter{}, false
	}
	typed := parts[i][strings.IndexByte(parts[i], '=')+1:]
	value, ok := number(typed)
	return parameter{value, typed, stack[:begin] + strings.Join(slices.Delete(parts, i, i+1), ",") +
		stack[begin+length:]}, ok
}

func number(text string) (float64, bool) {
	if n, err := reports.ParseSize(text); err == nil {
		return float64(n), true
	}
	d, err := time.ParseDuration(text)
	return float64(d), err == nil
}

// parameterNames are the numbers in which stacks differ that are alike otherwise.
func parameterNames(samples []*reports.Measured) (names []string) {
	var all []string
	for _, x := range samples {
		for _, layer := range reports.Layers(x.Stack) {
			name, inside, ok := strings.Cut(layer, "(")
			for _, p := range strings.Split(strings.TrimSuffix(inside, ")"), ",") {
				key, value, found := strings.Cut(strings.TrimSpace(p), "=")
				if _, isNumber := number(value); ok && found && isNumber && !slices.Contains(all, key+" of "+name) {
					all = append(all, key+" of "+name)
				}
			}
		}
	}
	for _, name := range all {
		values := map[string]float64{} // by the rest
		for _, x := range samples {
			p, ok := parameterOf(x.Stack, name)
			if v, seen := values[p.rest]; ok && seen && v != p.value && !slices.Contains(names, name) {
				names = append(names, name)
			} else if ok {
				values[p.rest] = p.value
			}
		}
	}
	return names
}
