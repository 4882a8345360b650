package stackspec

import (
	"slices"
	"strings"
)

// AllStacks is the value of --transport for every stack that this machine can run side by side.
const AllStacks = "all"

// LeftOut is a stack that is not measured with the others, and why.
type LeftOut struct{ Stack, Why string }

// All lists the stacks over the best provider of this machine, in the order of the table, and what is left out.
func All() (stacks []string, out []LeftOut) {
	best := Best()
	for i := range Table {
		e := &Table[i]
		switch {
		case e.device != nil && strings.HasPrefix(best, e.Name):
			stacks = append(stacks, best)
		case len(e.beside) == 0:
			out = append(out, LeftOut{e.Label(), e.apart})
		}
		for _, s := range e.beside {
			stacks = append(stacks, strings.ReplaceAll(s, "X", best))
		}
	}
	// The provider first: it is what the others are read against.
	i := slices.Index(stacks, best)
	return append([]string{best}, slices.Delete(stacks, i, i+1)...), out
}
