package reports

import (
	"fmt"
	"strconv"

	"github.com/rdmaperf/rdmaperf/reports/view"
)

// TransportOf is the transport as it was asked for, or else the stack.
func TransportOf(r *Result) string {
	if r.Transport != "" {
		return r.Transport
	}
	return r.Stack
}

// NameRoom is how many characters a short name has at most: about one line of a
// headline, and of a chart's key together with a word behind it.
const NameRoom = 40

// ShortNames are what the series are called where there is no room for all their
// parameters: headline, keys and axes. full and asked belong together: a stack with
// every parameter that it ran with, and as it was asked for. Tables, hover texts and
// descriptions keep the full names. No two are equal: what would be gets its number.
func ShortNames(full, asked []string) []string {
	short := make([]string, len(full))
	count := map[string]int{}
	for i, name := range full {
		if asked[i] != "" && len(asked[i]) < len(name) {
			name = asked[i]
		}
		short[i] = view.Shorten(name, NameRoom)
		count[short[i]]++
	}
	for i, name := range short {
		if count[name] > 1 {
			number := fmt.Sprintf(" #%d", i+1)
			short[i] = view.Shorten(name, NameRoom-len(number)) + number
		}
	}
	return short
}

// Offered is the load of an open loop in operations a second, empty for a closed one.
func Offered(r *Result) string {
	if r.Rate == 0 {
		return ""
	}
	return strconv.FormatFloat(r.Rate, 'f', -1, 64)
}
