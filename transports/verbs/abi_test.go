package verbs

import (
	"errors"
	"os/exec"
	"testing"
)

func TestABIAgreesWithTheHeaders(t *testing.T) {
	out, err := exec.Command("../../ci/abi").CombinedOutput()
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() == 77 {
		t.Skipf("optional headers absent: %s", out)
	}
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}
