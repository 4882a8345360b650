package reports

import (
	"errors"
	"fmt"
	"testing"
)

func TestExitError(t *testing.T) {
	cause := errors.New("connection refused")
	for _, c := range []struct {
		name string
		err  error
		text string
		code int
	}{
		{"with cause", &ExitError{Code: ExitPeer, Operation: "connect 10.0.0.1:18515", Err: cause},
			"connect 10.0.0.1:18515: connection refused", ExitPeer},
		{"without cause", &ExitError{Code: ExitNotRun, Operation: "open verbs"}, "open verbs", ExitNotRun},
		{"without operation", &ExitError{Code: ExitUsage, Err: cause}, "connection refused", ExitUsage},
		{"wrapped", fmt.Errorf("run: %w", &ExitError{Code: ExitCorruption, Operation: "verify", Err: cause}),
			"run: verify: connection refused", ExitCorruption},
		{"joined", errors.Join(cause, &ExitError{Code: ExitThreshold, Operation: "compare"}),
			"connection refused\ncompare", ExitThreshold},
		{"code 0 on an error", &ExitError{Code: ExitOK, Operation: "run", Err: cause}, "run: connection refused",
			ExitFailed},
		{"any other error", cause, "connection refused", ExitFailed},
	} {
		if got := c.err.Error(); got != c.text {
			t.Errorf("%s: Error() = %q, want %q", c.name, got, c.text)
		}
		if got := Code(c.err); got != c.code {
			t.Errorf("%s: Code = %d, want %d", c.name, got, c.code)
		}
	}
	if got := Code(nil); got != ExitOK {
		t.Errorf("Code(nil) = %d, want %d", got, ExitOK)
	}
	if !errors.Is(&ExitError{Operation: "connect", Err: cause}, cause) {
		t.Error("an ExitError does not unwrap to its cause")
	}
}
