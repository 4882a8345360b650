package verbs

import (
	"fmt"
	"os"
	"runtime"
	"strings"
)

// copiesUpwards reports whether the kernel's memcpy, with which software devices place what arrives, stores the last
// byte last. On x86-64 it does where it is one string instruction: with rep_good or erms, and since Linux 6.4 with fsrm
// only. Else memcpy_orig of arch/x86/lib/memcpy_64.S begins at the end for about half of all addresses. Nothing is
// known of other processors.
func copiesUpwards(arch, release, cpuinfo string) bool {
	var major, minor int
	if _, err := fmt.Sscanf(release, "%d.%d", &major, &minor); err != nil || arch != "amd64" {
		return false
	}
	flags := ""
	for line := range strings.Lines(cpuinfo) {
		if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "flags" {
			flags = " " + strings.TrimSpace(value) + " "
			break
		}
	}
	has := func(flag string) bool { return strings.Contains(flags, " "+flag+" ") }
	if major > 6 || major == 6 && minor >= 4 {
		return has("fsrm")
	}
	return has("rep_good") || has("erms")
}

func placesUpwards() bool {
	release, err := os.ReadFile("/proc/sys/kernel/osrelease")
	if err != nil {
		return false
	}
	cpuinfo, err := os.ReadFile("/proc/cpuinfo")
	return err == nil && copiesUpwards(runtime.GOARCH, string(release), string(cpuinfo))
}
