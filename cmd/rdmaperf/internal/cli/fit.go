package cli

import (
	"fmt"
	"io"
	"os"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// FitHelp fits the help of every command to the terminal. A command with a usage of its own keeps it.
func FitHelp(root *cobra.Command) {
	root.SetHelpFunc(func(c *cobra.Command, _ []string) {
		text := c.Long
		if text == "" {
			text = c.Short
		}
		out := c.OutOrStdout()
		fmt.Fprintf(out, "%s\n\n", Fill(text, Columns(os.Stdout)))
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
