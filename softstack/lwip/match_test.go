//go:build lwip && cgo

package lwip

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestALibraryOfOtherLimitsIsRefused: this test again, with a library that declares pools of other
// sizes than the headers at hand make, and nothing else: it is told before anything of it is used.
func TestALibraryOfOtherLimitsIsRefused(t *testing.T) {
	if os.Getenv("LWIP_UNLIKE") != "" {
		_, err := Open(Config{})
		fmt.Println("opened:", err)
		return
	}
	if _, err := exec.LookPath("gcc"); err != nil {
		t.Skipf("no compiler for another library: %v", err)
	}
	const none = "extern int nothing;\n"
	headers := "#include \"lwip/tcp.h\"\n#include \"lwip/priv/tcp_priv.h\"\n#include \"lwip/priv/memp_priv.h\"\n"
	pool := func(name, size string) string {
		return fmt.Sprintf("const struct memp_desc memp_%s = {LWIP_MEM_ALIGN_SIZE(%s)};\n", name, size)
	}
	all := []string{pool("TCP_PCB", "sizeof(struct tcp_pcb)"), pool("TCP_PCB_LISTEN", "sizeof(struct tcp_pcb_listen)"),
		pool("TCP_SEG", "sizeof(struct tcp_seg)"), pool("PBUF", "sizeof(struct pbuf)")}
	same := strings.Join(all, "")
	for name, c := range map[string]struct{ source, want string }{
		"another connection": {pool("TCP_PCB", "sizeof(struct tcp_pcb) + 8") + strings.Join(all[1:], ""),
			"has a TCP_PCB of "},
		"another segment": {all[0] + all[1] + pool("TCP_SEG", "8") + all[3],
			"has a TCP_SEG of 8 octets, and this program is for "},
		"no pools":               {none, "has no memp_TCP_PCB"},
		"the pools, and no lwIP": {same, ErrAbsent.Error() + ": liblwip.so.0 has no tcpip_init"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			file := filepath.Join(dir, "other.c")
			if err := os.WriteFile(file, []byte(headers+c.source), 0o600); err != nil {
				t.Fatal(err)
			}
			args := append([]string{"-shared", "-fPIC", "-I/usr/include/lwip", "-o",
				filepath.Join(dir, "liblwip.so.0")}, file)
			if out, err := exec.Command("gcc", args...).CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			again := exec.Command(os.Args[0], "-test.run", "^TestALibraryOfOtherLimitsIsRefused$")
			again.Env = append(os.Environ(), "LWIP_UNLIKE=1", "LD_LIBRARY_PATH="+dir)
			out, err := again.CombinedOutput()
			if line, _, _ := strings.Cut(string(out), "\n"); err != nil || !strings.HasPrefix(line, "opened: ") ||
				!strings.Contains(line, c.want) {
				t.Errorf("%v, %s, want %q", err, out, c.want)
			}
		})
	}
}

// TestOtherLimitsAreTold: of a library whose structs are the same.
func TestOtherLimitsAreTold(t *testing.T) {
	openStack(t, Config{})
	mss, buffer := ownLimits()
	if err := limits(mss, buffer); err != nil {
		t.Errorf("the library's own: %v", err)
	}
	for name, err := range map[string]error{
		"longer segments": limits(mss+7500, buffer), "shorter segments": limits(mss-1, buffer),
		"a larger window": limits(mss, buffer<<4), "both": limits(mss+7500, buffer<<4),
	} {
		if !errors.Is(err, ErrUnlike) ||
			!strings.Contains(err.Error(), fmt.Sprintf("segments of %d octets and %d to send", mss, buffer)) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
