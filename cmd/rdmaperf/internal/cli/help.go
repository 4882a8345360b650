package cli

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/term"
)

// FitHelp fits the help of every command to the terminal. A command with a usage of its own keeps it.
func FitHelp(root *cobra.Command) {
	root.SetHelpFunc(func(c *cobra.Command, _ []string) {
		out := c.OutOrStdout()
		fmt.Fprintf(out, "%s\n\n", Fill(cmp.Or(c.Long, c.Short), Columns(os.Stdout)))
		c.SetOut(out)
		c.SetErr(out)
		c.Usage() // an error of the terminal is no error of the help
	})
	root.SetUsageFunc(func(c *cobra.Command) error { return fittedUsage(c, c.OutOrStderr()) })
}

func fittedUsage(c *cobra.Command, w io.Writer) error {
	fmt.Fprintf(w, "Usage:\n")
	if c.Runnable() {
		fmt.Fprintf(w, "  %s\n", c.UseLine())
	}
	if c.HasAvailableSubCommands() {
		fmt.Fprintf(w, "  %s [command]\n", c.CommandPath())
	}
	if c.HasExample() {
		fmt.Fprintf(w, "\nExamples:\n%s\n", c.Example)
	}
	if c.HasAvailableSubCommands() {
		fmt.Fprintf(w, "\nAvailable Commands:\n")
		for _, sub := range c.Commands() {
			if sub.IsAvailableCommand() || sub.Name() == "help" {
				line := fmt.Sprintf("  %-*s %s", sub.NamePadding(), sub.Name(), sub.Short)
				fmt.Fprintln(w, strings.Join(Hang(line, Columns(os.Stdout)), "\n"))
			}
		}
	}
	for _, part := range []struct {
		title string
		flags *pflag.FlagSet
	}{{"Flags", c.LocalFlags()}, {"Global Flags", c.InheritedFlags()}} {
		if part.flags.HasAvailableFlags() {
			fmt.Fprintf(w, "\n%s:\n%s", part.title, wholeTexts(part.flags).FlagUsagesWrapped(Columns(os.Stdout)))
		}
	}
	if c.HasAvailableSubCommands() {
		fmt.Fprintf(w, "\nUse %q for more about a command.\n", c.CommandPath()+" [command] --help")
	}
	return nil
}

// Fill sets paragraphs in lines of at most so many columns; lines that begin with a blank stay as they are.
func Fill(text string, columns int) string {
	var out, words []string
	flush := func() {
		line := ""
		for _, w := range words {
			switch {
			case line == "":
				line = w
			case utf8.RuneCountInString(line)+1+utf8.RuneCountInString(w) > columns:
				out = append(out, line)
				line = w
			default:
				line += " " + w
			}
		}
		if line != "" {
			out = append(out, line)
		}
		words = nil
	}
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		if line == "" || line[0] == ' ' || line[0] == '\t' {
			flush()
			out = append(out, Hang(line, columns)...)
			continue
		}
		words = append(words, strings.Fields(line)...)
	}
	flush()
	return strings.Join(out, "\n")
}

// Hanging is where the second line of an item begins: below the text behind its term.
const Hanging = 27 // as help of stacks sets its terms

// Hang breaks a long item of a list.
func Hang(line string, columns int) (lines []string) {
	for utf8.RuneCountInString(line) > columns {
		at := len(string([]rune(line)[:columns+1]))
		at = strings.LastIndexByte(line[:at], ' ')
		if at <= Hanging {
			break // one long word
		}
		lines = append(lines, line[:at])
		line = strings.Repeat(" ", Hanging) + line[at+1:]
	}
	return append(lines, line)
}

// FlagGroup is a part of a command's help: flags that belong together.
type FlagGroup struct {
	Title string
	Flags []string // long names, in the order of the help
}

const otherFlags = "Flags"

// WriteFlags writes the flags of f by groups. Short takes the first line of each text alone.
func WriteFlags(w io.Writer, f *pflag.FlagSet, groups []FlagGroup, short bool) {
	for _, g := range splitFlags(f, groups, short) {
		fmt.Fprintf(w, "\n%s:\n%s", g.title, g.set.FlagUsagesWrapped(Columns(os.Stdout)))
	}
}

// GroupedUsage makes c's help show its flags by groups. Flags that no group names come last.
func GroupedUsage(c *cobra.Command, groups []FlagGroup) {
	c.SetUsageFunc(func(c *cobra.Command) error {
		w := c.OutOrStderr()
		fmt.Fprintf(w, "Usage:\n  %s\n", c.UseLine())
		if c.HasExample() {
			fmt.Fprintf(w, "\nExamples:\n%s\n", c.Example)
		}
		WriteFlags(w, c.Flags(), groups, false)
		return nil
	})
}

type titledFlags struct {
	title string
	set   *pflag.FlagSet
}

func splitFlags(f *pflag.FlagSet, groups []FlagGroup, short bool) []titledFlags {
	var dealt []titledFlags
	named := map[string]bool{}
	add := func(title string, flags []*pflag.Flag) {
		set := pflag.NewFlagSet(title, pflag.ContinueOnError)
		set.SortFlags = false
		for _, one := range flags {
			if one == nil || one.Hidden {
				continue
			}
			set.AddFlag(withText(one, short))
		}
		if set.HasFlags() {
			dealt = append(dealt, titledFlags{title, set})
		}
	}
	for _, g := range groups {
		var flags []*pflag.Flag
		for _, name := range g.Flags {
			named[name] = true
			flags = append(flags, f.Lookup(name))
		}
		add(g.Title, flags)
	}
	var rest []*pflag.Flag
	f.VisitAll(func(one *pflag.Flag) {
		if !named[one.Name] && !short {
			rest = append(rest, one)
		}
	})
	add(otherFlags, rest)
	return dealt
}

func withText(f *pflag.Flag, short bool) *pflag.Flag {
	shown := *f
	first, rest, more := strings.Cut(f.Usage, "\n")
	if shown.Usage = first; more && !short {
		shown.Usage += "; " + rest
	}
	return &shown
}

func wholeTexts(f *pflag.FlagSet) *pflag.FlagSet {
	whole := pflag.NewFlagSet("", pflag.ContinueOnError)
	whole.SortFlags = f.SortFlags
	f.VisitAll(func(one *pflag.Flag) { whole.AddFlag(withText(one, false)) })
	return whole
}

// Only are the flags of f that names has, in its order.
func Only(f *pflag.FlagSet, names []string) *pflag.FlagSet {
	only := pflag.NewFlagSet("", pflag.ContinueOnError)
	only.SortFlags = false
	for _, name := range names {
		if one := f.Lookup(name); one != nil {
			only.AddFlag(one)
		}
	}
	return only
}

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
