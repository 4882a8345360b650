package run

import (
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

func TestHostsAreReadAsPeopleWriteThem(t *testing.T) {
	for _, c := range []struct {
		arg, host string
		port      int
	}{
		{"192.0.2.7", "192.0.2.7", 18515}, {"node7", "node7", 18515}, {"::1", "::1", 18515},
		{"fe80::1%eth0", "fe80::1%eth0", 18515},
		{"[::1]", "::1", 18515}, {"[::1]:19000", "::1", 19000}, {"node7:19000", "node7", 19000},
		{"192.0.2.7:19000", "192.0.2.7", 19000},
		{"[fe80::1%eth0]:1", "fe80::1%eth0", 1},
	} {
		host, port, err := splitHost(c.arg, 18515, false)
		if err != nil || host != c.host || port != c.port {
			t.Errorf("%s: %q %d %v, want %q %d", c.arg, host, port, err, c.host, c.port)
		}
	}
	for _, arg := range []string{"", ":1", "node7:", "node7:http", "node7:0", "node7:65536", "[::1", "[::1]x", "[]",
		"[]:5", "tcp://node7", "::1:18515", "[::1:18515]", "user@node7", "a b"} {
		if host, port, err := splitHost(arg, 18515, false); err == nil {
			t.Errorf("%q is read as %q %d", arg, host, port)
		}
	}
	if _, _, err := splitHost("node7:19000", 19001, true); err == nil {
		t.Error("two ports are accepted")
	}
	if _, port, err := splitHost("node7:19000", 19000, true); err != nil || port != 19000 {
		t.Errorf("the same port twice: %d, %v", port, err)
	}
}

// Without a flag that says what to measure, run HOST measures the same stacks as run; where results go is no such flag.
func TestARunWithAHostMeasuresTheSameStacks(t *testing.T) {
	for line, want := range map[string]bool{"": true, "node7": true, "node7 -p 18600 --timeout 2s --no-wait": true,
		"--timeout 15s": true, "node7 -s 64": false, "node7 --transport tcp": false, "node7 -d mlx5_0": false,
		"-o dir --quiet --report_gbits": true, "--format json --no-save": true, "--details --export csv": true,
		"-o dir -D 2s": false, "--raw file": false, "--fail-if p99>1ms": false} {
		o := &Options{}
		f := pflag.NewFlagSet("run", pflag.ContinueOnError)
		o.Register(f)
		if err := f.Parse(strings.Fields(line)); err != nil {
			t.Fatal(err)
		}
		if got := isBare(f); got != want {
			t.Errorf("run %s: every stack %v, want %v", line, got, want)
		}
	}
}
