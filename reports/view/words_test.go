package view

import "testing"

// What a peer or a file says neither moves a terminal's cursor nor turns what is read.
func TestForeignTextNeitherMovesNorTurns(t *testing.T) {
	for in, want := range map[string]string{
		"a\x1b[2Jb": "a?[2Jb", "\x1b]8;;http://x\x07y": "?]8;;http://x?y", "a\u202eb": "a?b", "a\u2066b\u2069": "a?b?",
		"\u200e\u200f\u061c": "???",
		"\u009b1m":           "?1m", "\x7f": "?", "a\nb\tc": "a?b?c", "\ufeffx": "?x", "\xff": "?", "größe": "größe",
	} {
		if got := Printable(in); got != want {
			t.Errorf("Printable(%q) = %q, want %q", in, got, want)
		}
	}
	if got := Visible("a\u202eb\ufeff"); got != "ab" {
		t.Errorf("Visible = %q: what names cannot show takes no room", got)
	}
}
