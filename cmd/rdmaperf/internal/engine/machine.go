package engine

import (
	"bytes"
	"math"
	"os"
	"strconv"
	"time"
)

// machineTick is the unit of /proc/stat: USER_HZ is 100 on every architecture that Go
// runs on (proc_stat(5), sysconf(3)).
const machineTick = 10 * time.Millisecond

// readMachine is the processor time that this machine spent on anything since it booted,
// 0 where the kernel does not say.
func readMachine() time.Duration {
	b, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0
	}
	return machineTime(b)
}

// machineTime adds up the busy columns of the first line of proc_stat(5): user, nice,
// system, irq and softirq. Idle, iowait and what a hypervisor stole are no work, and
// guests' time is in user already.
func machineTime(stat []byte) time.Duration {
	line, _, _ := bytes.Cut(stat, []byte("\n"))
	f := bytes.Fields(line)
	if len(f) < 8 || string(f[0]) != "cpu" {
		return 0
	}
	var ticks uint64
	for _, column := range []int{1, 2, 3, 6, 7} {
		n, err := strconv.ParseUint(string(f[column]), 10, 48)
		if err != nil {
			return 0
		}
		ticks += n
	}
	if ticks > math.MaxInt64/uint64(machineTick) { // 292 years of processor time: nobody's file
		return 0
	}
	return time.Duration(ticks) * machineTick
}
