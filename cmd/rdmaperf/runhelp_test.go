package main

import (
	"bytes"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/cli"
)

// No command's help has sentences or flags beyond the width.
func TestHelpOfEveryCommandFits(t *testing.T) {
	var walk func(c *cobra.Command)
	walk = func(c *cobra.Command) {
		var out bytes.Buffer
		c.SetOut(&out)
		c.Help()
		for line := range strings.Lines(out.String()) {
			example := c.Example != "" && strings.Contains(c.Example, strings.TrimSuffix(line, "\n"))
			if n := utf8.RuneCountInString(line) - 1; n > cli.HelpWidth && !example {
				t.Errorf("%s: %d columns: %s", c.CommandPath(), n, line)
			}
		}
		for _, sub := range c.Commands() {
			walk(sub)
		}
	}
	walk(newRootCommand())
}
