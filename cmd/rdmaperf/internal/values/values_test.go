package values

import (
	"testing"
	"time"
)

func TestDurationsHaveAUnitOrAreSeconds(t *testing.T) {
	for s, want := range map[string]time.Duration{"3": 3 * time.Second, "3s": 3 * time.Second,
		"500ms": 500 * time.Millisecond, "1m": time.Minute, "0.5": 500 * time.Millisecond} {
		if got, err := Duration(s); err != nil || got != want {
			t.Errorf("Duration(%q) = %v, %v, want %v", s, got, err, want)
		}
	}
	for _, s := range []string{"", "0", "-1", "0s", "x", "1.5.5", "."} {
		if got, err := Duration(s); err == nil {
			t.Errorf("Duration(%q) = %v, want an error", s, got)
		}
	}
}
