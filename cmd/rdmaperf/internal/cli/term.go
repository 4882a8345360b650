package cli

import (
	"io"
	"os"

	"golang.org/x/term"
)

// TerminalColumns is the room for tables and sentences on a terminal; 0 for anything else.
func TerminalColumns(w io.Writer) int {
	if f, ok := w.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		return min(max(Width(w), 60), 120) // a longer line is hard to read
	}
	return 0
}

// Coloured tells whether w is a terminal that wants colour (no-color.org).
func Coloured(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok || os.Getenv("NO_COLOR") != "" || os.Getenv("TERM") == "dumb" {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// Width is that of the terminal behind w, in columns; where that is not known, the oldest terminal's.
func Width(w io.Writer) int {
	if f, ok := w.(*os.File); ok {
		if n, _, err := term.GetSize(int(f.Fd())); err == nil && n > 0 {
			return n
		}
	}
	return 80
}

// Cut is a line of at most so many columns, with an ellipsis in its middle for what is left out.
func Cut(line string, columns int) string {
	runes := []rune(line)
	columns = max(columns, 10)
	if len(runes) <= columns {
		return line
	}
	head := (columns - 1) / 3
	tail := columns - 1 - head
	return string(runes[:head]) + "…" + string(runes[len(runes)-tail:])
}

// HelpWidth is the width of help, in columns, where the terminal does not say.
const HelpWidth = 80

// Columns is the width of help written to out.
func Columns(out *os.File) int {
	if w, _, err := term.GetSize(int(out.Fd())); err == nil && w > 60 {
		return w
	}
	return HelpWidth
}
