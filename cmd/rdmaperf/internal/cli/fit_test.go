package cli

import (
	"strings"
	"testing"
)

// Sentences are filled to the width, and lists and examples stay as they are.
func TestHelpIsFilled(t *testing.T) {
	item := "    term" + strings.Repeat(" ", Hanging-8) + "what it is"
	got := Fill("one two three\nfour\n\n"+item+" and more\nfive", 38)
	if want := "one two three four\n\n" + item + "\n" + strings.Repeat(" ", Hanging) + "and more\nfive"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
