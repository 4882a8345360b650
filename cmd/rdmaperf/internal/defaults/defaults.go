// Package defaults sets flags that nobody typed to what the environment says, RDMAPERF_COMMAND_FLAG with underscores
// for dashes (RDMAPERF_RUN_DURATION=3s), else the configuration file.
package defaults

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/cli"
)

var neverDefault = []string{"help", "version", "once-parent", "scenario"}

// Apply sets the flags of cmd that were not typed and for which the user has defaults, and with --verbose says which.
// Of two exclusive flags, the file does not take back what the environment says.
func Apply(cmd *cobra.Command, environ []string, exclusive [][2]string) error {
	if f := cmd.Flags().Lookup("once-parent"); f != nil && f.Changed {
		return nil // a child has what its parent says
	}
	env := map[string]string{}
	for _, pair := range environ {
		name, value, _ := strings.Cut(pair, "=")
		env[name] = value
	}
	withoutServices(env)
	path := ConfigFile(func(name string) string { return env[name] })
	file, err := ReadConfig(path)
	switch {
	case errors.Is(err, fs.ErrPermission): // it may be another user's, as under sudo(8)
		fmt.Fprintf(cmd.ErrOrStderr(), "rdmaperf: no defaults: %v\n", err)
	case err != nil:
		return cli.Usage("read defaults", err, "correcting or removing the file")
	}
	if err := checkNames(cmd.Root(), path, file); err != nil {
		return err
	}
	d := defaults{flags: cmd.Flags(), exclusive: exclusive, known: map[string]bool{}}
	d.flags.Visit(func(f *pflag.Flag) { d.known[f.Name] = true })
	d.each(func(f *pflag.Flag) (value, from string, err error) {
		from = variable(cmd, f.Name)
		return env[from], from, nil
	})
	d.each(func(f *pflag.Flag) (value, from string, err error) {
		node, ok := file.commands[cmd.Name()][f.Name]
		if !ok {
			return "", "", nil
		}
		if value, err = plainValue(&node); err != nil {
			err = fmt.Errorf("%s:%d: %s: %w", path, node.Line, f.Name, err)
		}
		return value, path, err
	})
	if d.err != nil {
		return cli.Usage("read defaults", d.err, cmd.CommandPath()+" --help")
	}
	for _, name := range slices.Sorted(maps.Keys(env)) {
		// No mistake that ends a command: others may have names of that kind.
		if flag, ok := strings.CutPrefix(name, variable(cmd, "")); ok && env[name] != "" && !d.has(flag) {
			fmt.Fprintf(cmd.ErrOrStderr(), "rdmaperf: %s: %s has no such default\n", name, cmd.Name())
		}
	}
	if cmd.Annotations == nil {
		cmd.Annotations = map[string]string{}
	}
	cmd.Annotations[saidDefaults] = strings.Join(d.said, "\n")
	if verbose, e := cmd.Flags().GetBool("verbose"); e == nil && verbose {
		for _, s := range d.said {
			fmt.Fprintln(cmd.ErrOrStderr(), "rdmaperf: default "+s)
		}
	}
	return nil
}

// saidDefaults is the annotation of a command that has the defaults it began with, one a line.
const saidDefaults = "defaults"

// Named are the defaults of flags that an error names, because the user did not type them.
func Named(cmd *cobra.Command, text string) (list []string) {
	if verbose, err := cmd.Flags().GetBool("verbose"); err == nil && verbose {
		return nil // said
	}
	for _, s := range strings.Split(cmd.Annotations[saidDefaults], "\n") {
		if flag, _, ok := strings.Cut(s, " "); ok && strings.Contains(text, flag) {
			list = append(list, "rdmaperf: default "+s)
		}
	}
	return list
}

func variable(cmd *cobra.Command, flag string) string {
	return "RDMAPERF_" + strings.ToUpper(strings.ReplaceAll(cmd.Name()+"_"+flag, "-", "_"))
}

func checkNames(root *cobra.Command, path string, file config) error {
	for name, flags := range file.commands {
		of := commandOf(root, name)
		if of == nil {
			return cli.Usage("read defaults", fmt.Errorf("%s: no command %s", path, name), "rdmaperf --help")
		}
		for flag := range flags {
			if of.Flags().Lookup(flag) == nil || slices.Contains(neverDefault, flag) {
				return cli.Usage("read defaults", fmt.Errorf("%s: %s has no default for --%s", path, name, flag),
					of.CommandPath()+" --help")
			}
		}
	}
	return nil
}

type defaults struct {
	flags     *pflag.FlagSet
	exclusive [][2]string     // flags that say the same thing in two ways
	known     map[string]bool // typed, or set by what comes first
	said      []string
	err       error // the first mistake
}

// each sets the flags that nothing says yet and that source has a value for.
func (d *defaults) each(source func(f *pflag.Flag) (value, from string, err error)) {
	known := maps.Clone(d.known) // of one source two things may exclude each other: that is a mistake
	d.flags.VisitAll(func(f *pflag.Flag) {
		if d.err != nil || known[f.Name] || slices.Contains(neverDefault, f.Name) {
			return
		}
		value, from, err := source(f)
		if d.err = err; err != nil || value == "" || d.excluded(f.Name, known) {
			return
		}
		if err := d.flags.Set(f.Name, value); err != nil {
			var wrong *pflag.InvalidValueError
			if errors.As(err, &wrong) {
				err = cli.BadValue(wrong)
			}
			d.err = fmt.Errorf("%s: %w", from, err)
			return
		}
		d.known[f.Name] = true
		d.said = append(d.said, fmt.Sprintf("--%s %s, from %s", f.Name, value, from))
	})
}

// has tells whether a flag may have the default of a variable that ends so.
func (d *defaults) has(end string) (found bool) {
	d.flags.VisitAll(func(f *pflag.Flag) {
		found = found || strings.ToUpper(strings.ReplaceAll(f.Name, "-", "_")) == end &&
			!slices.Contains(neverDefault, f.Name)
	})
	return found
}

func (d *defaults) excluded(name string, typed map[string]bool) bool {
	return slices.ContainsFunc(d.exclusive, func(pair [2]string) bool {
		return pair[0] == name && typed[pair[1]] || pair[1] == name && typed[pair[0]]
	})
}

func commandOf(root *cobra.Command, name string) *cobra.Command {
	for _, c := range root.Commands() {
		if c.Name() == name && !c.Hidden {
			return c
		}
	}
	return nil
}
