package view

import (
	"strings"
	"unicode/utf8"
)

// Folded breaks a name into lines of at most width, behind a comma or before a plus; a longer
// part stands alone.
func Folded(name string, width int) (lines []string) {
	from, last := 0, 0
	for i, r := range name {
		cut := i
		if r == ',' {
			cut++
		} else if r != '+' {
			continue
		}
		if utf8.RuneCountInString(name[from:cut]) > width && last > from {
			lines, from = append(lines, name[from:last]), last
		}
		last = cut
	}
	if utf8.RuneCountInString(name[from:]) > width && last > from {
		lines, from = append(lines, name[from:last]), last
	}
	return append(lines, name[from:])
}

// Wrap breaks text between words into lines of at most width; a longer word, which is
// the name of a stack, is folded at its parameters. Lines after the first begin with indent.
func Wrap(text string, width int, indent string) []string {
	var lines []string
	line := ""
	for _, word := range strings.Fields(text) {
		for i, part := range Folded(word, width-utf8.RuneCountInString(indent)) {
			switch {
			case line == "":
				line = part
			case i > 0 || utf8.RuneCountInString(line)+1+utf8.RuneCountInString(part) > width:
				lines = append(lines, line)
				line = indent + part
			default:
				line += " " + part
			}
		}
	}
	return append(lines, line)
}
