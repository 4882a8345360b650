package measure

import (
	"bufio"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/arms"
)

// Most is how many bytes a point may have here: no more than the target registers, a
// quarter of the memory that the system says is available, and half of what may be
// locked. Of a cache's working set one buffer has to fit into that half: for the next one
// the cache gives up what nobody uses. why names the least of them. Without a target it is what the machine allows.
func Most(t *Target, p Point) (n int, why string) {
	n, why = 1<<40, "no limit is known"
	least := func(v int, s string) {
		if v < n {
			n, why = v, s
		}
	}
	if t != nil && t.Most > 0 {
		least(t.Most, fmt.Sprintf("%s registers at most %d bytes at once", t.Name, t.Most))
	}
	if v := available(); v > 0 {
		least(v/4, fmt.Sprintf("a quarter of the %d bytes of memory that are available", v))
	}
	evicts := p.Pattern == PatternSet && p.Arm == arms.Cache
	if v, limited := lockable(); limited && !(evicts && p.Size <= v/2) {
		least(v/2, fmt.Sprintf("half of the %d bytes that may be locked (ulimit -l)", v))
	}
	return n, why
}

// available is MemAvailable of /proc/meminfo (proc(5)) in bytes, 0 where it is not said.
func available() int {
	f, err := os.Open("/proc/meminfo")
	if err != nil {
		return 0
	}
	defer f.Close()
	for s := bufio.NewScanner(f); s.Scan(); {
		var kb int
		if k, _ := fmt.Sscanf(s.Text(), "MemAvailable: %d kB", &kb); k == 1 {
			return kb << 10
		}
	}
	return 0
}

// lockable is RLIMIT_MEMLOCK, which arms.Holds for who has no CAP_IPC_LOCK.
func lockable() (bytes int, limited bool) {
	hdr := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capget(&hdr, &data[0]); err == nil && data[0].Effective&(1<<unix.CAP_IPC_LOCK) != 0 {
		return 0, false
	}
	var lim unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_MEMLOCK, &lim); err != nil || lim.Cur > 1<<40 {
		return 0, false
	}
	return int(lim.Cur), true
}
