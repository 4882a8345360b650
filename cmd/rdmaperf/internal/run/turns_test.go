package run

import (
	"strings"
	"testing"
)

// A run among many is short where nothing says how long.
func TestTurnsAreBriefUnlessAsked(t *testing.T) {
	for _, c := range []struct{ options, want string }{{"-s 64", "-D 300ms -s 64"}, {"-D 1s", "-D 1s"}, {"-n100", "-n100"},
		{"--duration=2s", "--duration=2s"}, {"--rounds 4", "--rounds 4"}} {
		if got := strings.Join(briefly(strings.Fields(c.options)), " "); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}
