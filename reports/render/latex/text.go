package latex

import (
	"strings"

	"github.com/rdmaperf/rdmaperf/reports/view"
)

// commands are how signs are written that have a meaning, a ligature or no place in the
// oldest font encoding, OT1. None needs a package. Brackets and the star are in groups, as
// at the begin of a row they would be arguments of the end of the one before.
var commands = map[rune]string{
	'\\': `\textbackslash{}`, '{': `\{`, '}': `\}`, '$': `\$`, '&': `\&`, '#': `\#`, '_': `\_`, '%': `\%`,
	'^': `\textasciicircum{}`, '~': `\textasciitilde{}`, '<': `\textless{}`, '>': `\textgreater{}`, '|': `\textbar{}`,
	'[': `{[}`, ']': `{]}`, '*': `{*}`, '"': `{''}`, '`': "{`}", '\'': `{'}`,
	'µ': `$\mu$`, 'μ': `$\mu$`, '×': `$\times$`, '÷': `$\div$`, '±': `$\pm$`, '≤': `$\le$`, '≥': `$\ge$`,
	'·': `$\cdot$`, '…': `\ldots{}`,
	'–': `{--}`, '—': `{---}`, '\u202f': `\,`, '\u00a0': `~`, '✓': `$\surd$`,
}

// Text makes one line of LaTeX that reads as s does.
func Text(s string) string {
	var b strings.Builder
	last := rune(0)
	for _, r := range strings.Join(strings.FieldsFunc(view.Visible(s), func(r rune) bool { return r == ' ' }), " ") {
		switch c, known := commands[r]; {
		case known:
			b.WriteString(c)
		case r == '-' && last == '-', r == ',' && last == ',':
			b.WriteString("{}" + string(r)) // no dash of two hyphens, no quote of two commas
		case r < ' ' || r > '~':
			b.WriteByte('?')
		default:
			b.WriteRune(r)
		}
		last = r
	}
	return b.String()
}
