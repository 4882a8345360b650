package verbs

import (
	"errors"
	"os/exec"
	"testing"

	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

func TestConfigIsChecked(t *testing.T) {
	for _, c := range []Config{
		{Port: -1}, {Port: 256}, {GIDIndex: -2}, {GIDIndex: 256}, {MTU: 1500}, {MTU: 8192}, {Timeout: 32},
		{Timeout: -1}, {Retry: 8}, {Retry: -1},
	} {
		if _, err := Open(c); !errors.Is(err, rdma.ErrInvalid) {
			t.Errorf("%+v: %v, want an invalid argument", c, err)
		}
	}
	c := Default()
	if err := c.validate(); err != nil || c.Timeout != defaultTimeout || c.Retry != defaultRetry || c.GIDIndex != -1 {
		t.Errorf("defaults: %+v, %v", c, err)
	}
}

// A device that is not here is no usage error: exit code 77 and what to do.
func TestAbsentDeviceIsNamed(t *testing.T) {
	c := Default()
	c.Device = "absent0"
	_, err := Open(c)
	if !errors.Is(err, rdma.ErrNoDevice) || rdma.Advice(err) == "" {
		t.Errorf("%v, advice %q", err, rdma.Advice(err))
	}
}

func TestMTUCodes(t *testing.T) {
	for bytes, code := range map[int]int{0: 0, 128: 0, 256: 1, 512: 2, 1024: 3, 1500: 0, 2048: 4, 4096: 5, 8192: 0} {
		if got := mtuCode(bytes); got != code {
			t.Errorf("mtu %d: code %d, want %d", bytes, got, code)
		}
	}
}

func TestStackName(t *testing.T) {
	for want, c := range map[string]Config{"verbs": {}, "verbs:rxe0": {Device: "rxe0"},
		"verbs(cm):siw0": {Device: "siw0", CM: true}} {
		if got := c.name(); got != want {
			t.Errorf("%+v: %q, want %q", c, got, want)
		}
	}
}

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
