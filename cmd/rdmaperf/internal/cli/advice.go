package cli

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/perftest"
)

// FlagError is a mistake in a flag, with where the help is and what may have been meant.
func FlagError(cmd *cobra.Command, err error) error {
	hint := cmd.CommandPath() + " --help"
	if cmd.Name() == "run" {
		hint += " all"
	}
	var wrong *pflag.InvalidValueError
	if errors.As(err, &wrong) {
		return Usage("read command line", BadValue(wrong), hint)
	}
	var unknown *pflag.NotExistError
	if !errors.As(err, &unknown) {
		return Usage("read command line", err, hint)
	}
	name := unknown.GetSpecifiedName()
	var meant string
	if letters := unknown.GetSpecifiedShortnames(); letters == "" {
		meant = nearest(cmd.Flags(), name)
	}
	switch advice := perftest.Advice(name); {
	case cmd.Name() == "run" && advice != "": // perftest has it: --odp is no misspelt --op
		err = fmt.Errorf("%w: %s", err, advice)
	case meant != "":
		hint = "--" + meant
	case unknown.GetSpecifiedShortnames() == "":
		if other := hasFlag(cmd.Root(), name); other != "" {
			hint = other + " --" + name + ", or " + hint
		}
	}
	return Usage("read command line", err, hint)
}

// BadValue says of a value that no flag takes what it should be, without the words of the parser.
func BadValue(wrong *pflag.InvalidValueError) error {
	f := wrong.GetFlag()
	name := "--" + f.Name
	if f.Shorthand != "" {
		name = "-" + f.Shorthand + ", " + name
	}
	want := wrong.Unwrap().Error()
	var number *strconv.NumError
	isNumber := errors.As(wrong, &number) // else the flag says itself what it wants
	switch kind := f.Value.Type(); {
	case isNumber && errors.Is(number.Err, strconv.ErrRange):
		want = "it is out of range"
	case isNumber && strings.HasPrefix(kind, "int"):
		want = "want a whole number"
	case isNumber && strings.HasPrefix(kind, "uint"):
		want = "want a whole number from 0"
	case isNumber && strings.HasPrefix(kind, "float"):
		want = "want a number"
	case kind == "duration":
		want = "want a time such as 10s or 500ms"
	case kind == "bool":
		want = "want true or false"
	}
	want = strings.TrimPrefix(want, fmt.Sprintf("threshold %q: ", wrong.GetValue()))
	return fmt.Errorf("%s %q: %s", name, wrong.GetValue(), want)
}

func hasFlag(root *cobra.Command, name string) string {
	for _, c := range root.Commands() {
		if f := c.Flags().Lookup(name); f != nil && !f.Hidden && !c.Hidden {
			return c.CommandPath()
		}
	}
	return ""
}

// KnowsItsCommands makes an unknown word behind a group of commands an error; cobra would show the help.
func KnowsItsCommands(group *cobra.Command) {
	group.Args = cobra.ArbitraryArgs
	group.RunE = func(c *cobra.Command, args []string) error {
		if len(args) == 0 {
			return c.Help()
		}
		var names []string
		for _, sub := range c.Commands() {
			if sub.IsAvailableCommand() {
				names = append(names, c.CommandPath()+" "+sub.Name())
			}
		}
		return Usage("read command line", fmt.Errorf("%s has no command %q", c.CommandPath(), args[0]),
			strings.Join(names, ", "))
	}
}

// NewHelpCommand is cobra's, but that a command which is not there is an error.
func NewHelpCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "help [COMMAND]",
		Short: "Help about a command",
		ValidArgsFunction: func(c *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			var names []string
			for _, sub := range c.Root().Commands() {
				if len(args) == 0 && sub.IsAvailableCommand() {
					names = append(names, sub.Name())
				}
			}
			return names, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(c *cobra.Command, args []string) error {
			cmd, rest, err := c.Root().Find(args)
			if err != nil || len(rest) > 0 && cmd.Name() != "run" { // run has topics
				hint := "rdmaperf --help"
				if meant := c.Root().SuggestionsFor(args[0]); len(meant) > 0 {
					hint = "rdmaperf help " + strings.Join(meant, " or ")
				}
				return Usage("read command line", fmt.Errorf("no command %q", strings.Join(args, " ")), hint)
			}
			cmd.HelpFunc()(cmd, rest)
			return nil
		},
	}
}

func nearest(f *pflag.FlagSet, name string) string {
	best, least := "", 3
	f.VisitAll(func(flag *pflag.Flag) {
		if flag.Hidden {
			return
		}
		if d := distance(flag.Name, name); d < least && d <= len(name)/3 {
			best, least = flag.Name, d
		}
	})
	return best
}

// distance is the Levenshtein distance.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := diagonal
			if a[i] != b[j] {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(change, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}

// CommandError is an unknown command in one line; cobra makes a list of what may have been meant.
func CommandError(cmd *cobra.Command, err error) error {
	text, rest, found := strings.Cut(err.Error(), "\n\nDid you mean this?\n")
	if !found {
		if word, of, ok := strings.Cut(text, " for "); ok && cmd.HasParent() {
			if word, ok = strings.CutPrefix(word, "unknown command "); ok {
				err = fmt.Errorf("%s takes no argument %s", strings.Trim(of, `"`), word)
			}
		}
		return Usage("read command line", err, cmd.CommandPath()+" --help")
	}
	return Usage("read command line", errors.New(text), "rdmaperf "+strings.Join(strings.Fields(rest), " or "))
}
