package reports

import (
	"fmt"
	"html/template"
	"strings"
)

// nameRoom is how many characters a short name has at most: about one line of a
// headline, and of a chart's key together with a word behind it.
const nameRoom = 40

// shortNames are what the series are called where there is no room for all their
// parameters: headline, keys and axes. full and asked belong together: a stack with
// every parameter that it ran with, and as it was asked for. Tables, hover texts and
// descriptions keep the full names. No two are equal: what would be gets its number.
func shortNames(full, asked []string) []string {
	short := make([]string, len(full))
	count := map[string]int{}
	for i, name := range full {
		if len([]rune(name)) > nameRoom && asked[i] != "" && len(asked[i]) < len(name) {
			name = asked[i]
		}
		short[i] = shorten(name, nameRoom)
		count[short[i]]++
	}
	for i, name := range short {
		if count[name] > 1 {
			number := fmt.Sprintf(" #%d", i+1)
			short[i] = shorten(name, nameRoom-len(number)) + number
		}
	}
	return short
}

// breakable is text that breaks between the parameters of a stack before it breaks
// inside one.
func breakable(s string) template.HTML {
	return template.HTML(breaks.Replace(template.HTMLEscapeString(s)))
}

var breaks = strings.NewReplacer(", ", ", ", ",", ",<wbr/>", ")+", ")<wbr/>+")
