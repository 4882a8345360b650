package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v3"
)

// Defaults of a user: what a command line does not say is taken from the environment,
// RDMAPERF_COMMAND_FLAG with underscores for dashes (RDMAPERF_RUN_DURATION=3s), else from
// the configuration file. Either is as if it had been typed.

// configFile is where the defaults of a user are (XDG Base Directory Specification);
// XDG_CONFIG_HOME is ignored unless it is absolute, as the specification wants. "" where
// nothing tells.
func configFile(getenv func(string) string) string {
	dir := getenv("XDG_CONFIG_HOME")
	if !filepath.IsAbs(dir) {
		home := getenv("HOME")
		if home == "" {
			return ""
		}
		dir = filepath.Join(home, ".config")
	}
	return filepath.Join(dir, "rdmaperf", "config.yaml")
}

// config is the file: a map of flags for each command, and hosts for completion.
type config struct {
	hosts    []string
	commands map[string]map[string]yaml.Node
}

// maxConfig bounds the file. Arbitrary: a hundred times what anybody writes.
const maxConfig = 1 << 20

// readConfig reads the file; one that is not there is empty.
func readConfig(path string) (c config, err error) {
	if path == "" {
		return c, nil
	}
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return c, nil
	}
	if err != nil {
		return c, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxConfig+1))
	if err != nil {
		return c, err
	}
	if len(b) > maxConfig {
		return c, fmt.Errorf("%s: longer than %d bytes", path, maxConfig)
	}
	var top map[string]yaml.Node
	if err := yaml.Unmarshal(b, &top); err != nil {
		return c, fmt.Errorf("%s: %w", path, err)
	}
	c.commands = map[string]map[string]yaml.Node{}
	for name, node := range top {
		if name == "hosts" {
			err = node.Decode(&c.hosts)
		} else {
			flags := map[string]yaml.Node{}
			err = node.Decode(&flags)
			c.commands[name] = flags
		}
		if err != nil {
			return c, fmt.Errorf("%s:%d: %s: %w", path, node.Line, name, err)
		}
	}
	return c, nil
}

// neverDefault are flags that a command line alone may have.
var neverDefault = []string{"help", "version", "once-parent", "scenario"}

// applyDefaults sets the flags of cmd that were not typed and for which the user has
// defaults, and with --verbose says which.
func applyDefaults(cmd *cobra.Command, getenv func(string) string) error {
	if f := cmd.Flags().Lookup("once-parent"); f != nil && f.Changed {
		return nil // a child has what its parent says
	}
	path := configFile(getenv)
	file, err := readConfig(path)
	if err != nil {
		return usage("read defaults", err, "mending or removing the file")
	}
	for name, flags := range file.commands {
		of := commandOf(cmd.Root(), name)
		if of == nil {
			return usage("read defaults", fmt.Errorf("%s: no command %s", path, name), "rdmaperf --help")
		}
		for flag := range flags {
			if of.Flags().Lookup(flag) == nil || slices.Contains(neverDefault, flag) {
				return usage("read defaults", fmt.Errorf("%s: %s has no default for --%s", path, name, flag), of.CommandPath()+" --help")
			}
		}
	}
	typed := map[string]bool{}
	cmd.Flags().Visit(func(f *pflag.Flag) { typed[f.Name] = true })
	var said []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if err != nil || typed[f.Name] || slices.Contains(neverDefault, f.Name) || excluded(f.Name, typed) {
			return
		}
		from := "RDMAPERF_" + strings.ToUpper(strings.NewReplacer("-", "_").Replace(cmd.Name()+"_"+f.Name))
		value := getenv(from)
		if value == "" {
			node, ok := file.commands[cmd.Name()][f.Name]
			if !ok {
				return
			}
			from = path
			if value, err = plainValue(&node); err != nil {
				err = fmt.Errorf("%s:%d: %s: %w", path, node.Line, f.Name, err)
				return
			}
		}
		if e := cmd.Flags().Set(f.Name, value); e != nil {
			var wrong *pflag.InvalidValueError
			if errors.As(e, &wrong) {
				e = badValue(wrong)
			}
			err = fmt.Errorf("%s: %w", from, e)
			return
		}
		said = append(said, fmt.Sprintf("--%s %s, from %s", f.Name, value, from))
	})
	if err != nil {
		return usage("read defaults", err, cmd.CommandPath()+" --help")
	}
	if verbose, e := cmd.Flags().GetBool("verbose"); e == nil && verbose {
		for _, s := range said {
			fmt.Fprintln(cmd.ErrOrStderr(), "rdmaperf: default "+s)
		}
	}
	return nil
}

// excluded tells that something was typed which says the same thing in another way.
func excluded(name string, typed map[string]bool) bool {
	return slices.ContainsFunc(exclusive, func(pair [2]string) bool {
		return pair[0] == name && typed[pair[1]] || pair[1] == name && typed[pair[0]]
	})
}

// plainValue is a value as a command line has it; a list is a comma list.
func plainValue(n *yaml.Node) (string, error) {
	switch n.Kind {
	case yaml.ScalarNode:
		return n.Value, nil
	case yaml.SequenceNode:
		var parts []string
		for _, item := range n.Content {
			if item.Kind != yaml.ScalarNode {
				return "", errors.New("want a value or a list of values")
			}
			parts = append(parts, item.Value)
		}
		return strings.Join(parts, ","), nil
	}
	return "", errors.New("want a value or a list of values")
}

func commandOf(root *cobra.Command, name string) *cobra.Command {
	for _, c := range root.Commands() {
		if c.Name() == name && !c.Hidden {
			return c
		}
	}
	return nil
}

// completeHosts offers the hosts of the configuration.
func completeHosts(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	file, err := readConfig(configFile(os.Getenv))
	if err != nil || len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return file.hosts, cobra.ShellCompDirectiveNoFileComp
}
