//go:build lwip && cgo

package lwip

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestALibraryOfOtherLimitsIsRefused runs itself with a library whose pools have other sizes.
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
			noError(t, os.WriteFile(file, []byte(headers+c.source), 0o600))
			if out, err := exec.Command("gcc", "-shared", "-fPIC", "-I/usr/include/lwip", "-o",
				filepath.Join(dir, "liblwip.so.0"), file).CombinedOutput(); err != nil {
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

// slowSum adds 16 bits at a time, as RFC 1071 §1 has it.
func slowSum(b []byte) uint16 {
	sum := uint32(0)
	for ; len(b) >= 2; b = b[2:] {
		sum += uint32(binary.NativeEndian.Uint16(b))
	}
	if len(b) == 1 {
		sum += uint32(binary.NativeEndian.Uint16([]byte{b[0], 0}))
	}
	for sum > 0xffff {
		sum = sum&0xffff + sum>>16
	}
	return uint16(sum)
}

// TestChecksumIsThatOfRFC1071 at every length of a segment and every alignment, also where all bits carry.
func TestChecksumIsThatOfRFC1071(t *testing.T) {
	for name, b := range map[string][]byte{"random": random(1, 1600), "ones": bytes.Repeat([]byte{0xff}, 1600),
		"zeros": make([]byte, 1600)} {
		for n := range 1500 {
			for at := range 8 {
				if got, want := checksum(b[at:at+n]), slowSum(b[at:at+n]); got != want {
					t.Fatalf("%s, %d octets at %d: %04x, want %04x", name, n, at, got, want)
				}
			}
		}
	}
}

// TestTheLibraryUsesOurChecksum: without that every segment takes twice as long.
func TestTheLibraryUsesOurChecksum(t *testing.T) {
	openStack(t, Config{})
	if !checksumReplaced() {
		t.Error("the program does not export its checksum")
	}
}
