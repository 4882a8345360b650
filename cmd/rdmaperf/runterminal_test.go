package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// terminal opens a pseudo-terminal (pty(7)).
func terminal(t *testing.T) (master, slave *os.File) {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Skipf("no pseudo-terminals here: %v", err)
	}
	t.Cleanup(func() { master.Close() })
	must(t, unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0))
	n := need(unix.IoctlGetUint32(int(master.Fd()), unix.TIOCGPTN))(t)
	slave = need(os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0))(t)
	t.Cleanup(func() { slave.Close() })
	return master, slave
}

// On a terminal there is a bar, which leaves no trace; in CI there is none.
func TestProgressOnATerminal(t *testing.T) {
	self := need(os.Executable())(t)
	for _, ci := range []string{"", "true"} {
		master, slave := terminal(t)
		cmd := exec.Command(self, "run", "--transport", "mem", "--workload", "latency", "--op", "send", "-s", "64",
			"--repeat", "2", "-D", "50ms", "--json", filepath.Join(t.TempDir(), "r.json"))
		cmd.Env = append(os.Environ(), "TERM=xterm", "CI="+ci)
		cmd.Stderr = slave
		must(t, cmd.Run())
		// A byte of our own ends the reading: closing the slave is an error on Linux.
		need(slave.WriteString("\x04"))(t)
		var seen []byte
		for b := make([]byte, 4096); !bytes.HasSuffix(seen, []byte("\x04")); {
			n := need(master.Read(b))(t)
			seen = append(seen, b[:n]...)
		}
		drawn := strings.Contains(string(seen), "1/2 mem ") && strings.Contains(string(seen), "2/2 mem ") &&
			strings.Contains(string(seen), " left")
		if drawn != (ci == "") || ci != "" && len(seen) != 1 {
			t.Errorf("CI=%q: the terminal shows %q", ci, seen)
		}
		last := strings.TrimSuffix(string(seen[strings.LastIndexByte(string(seen), '\r')+1:]), "\x04")
		if ci == "" && (strings.TrimSpace(last) != "" || strings.Contains(string(seen), "\n")) {
			t.Errorf("the bar leaves %q in %q", last, seen)
		}
	}
}
