// Package freemem says how many bytes of memory this process can still get.
package freemem

import (
	"bytes"
	"os"
	"path"
	"strconv"
	"strings"
)

// Bytes are of the machine (proc_meminfo(5)) and of the process's memory control groups (cgroups(7)), where unused file
// pages count as free. -1 where nothing says.
func Bytes() int64 { return available(os.ReadFile) }

func available(read func(name string) ([]byte, error)) int64 {
	left := int64(-1)
	take := func(n int64) {
		if left < 0 || n < left {
			left = max(n, 0)
		}
	}
	if b, err := read("/proc/meminfo"); err == nil {
		if n, ok := field(b, "MemAvailable:"); ok {
			take(n << 10)
		}
	}
	b, err := read("/proc/self/cgroup")
	if err != nil {
		return left
	}
	for line := range strings.Lines(string(b)) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) < 3 {
			continue
		}
		root, names := "", [3]string{}
		switch {
		case parts[1] == "":
			root, names = "/sys/fs/cgroup", [3]string{"memory.max", "memory.current", "inactive_file"}
		case strings.Contains(","+parts[1]+",", ",memory,"):
			root, names = "/sys/fs/cgroup/memory", [3]string{"memory.limit_in_bytes", "memory.usage_in_bytes",
				"total_inactive_file"}
		default:
			continue
		}
		for at := path.Clean("/" + parts[2]); ; at = path.Dir(at) {
			dir := path.Join(root, at)
			limit, ok := number(read, path.Join(dir, names[0]))
			used, known := number(read, path.Join(dir, names[1]))
			if ok && known {
				idle := int64(0)
				if b, err := read(path.Join(dir, "memory.stat")); err == nil {
					idle, _ = field(b, names[2])
				}
				take(limit - used + idle)
			}
			if at == "/" {
				break
			}
		}
	}
	return left
}

// number reads a file with one number; "max" is none.
func number(read func(string) ([]byte, error), name string) (int64, bool) {
	b, err := read(name)
	if err != nil {
		return 0, false
	}
	n, err := strconv.ParseInt(string(bytes.TrimSpace(b)), 10, 64)
	return n, err == nil && n >= 0
}

func field(b []byte, name string) (int64, bool) {
	for line := range bytes.Lines(b) {
		f := bytes.Fields(line)
		if len(f) < 2 || string(f[0]) != name {
			continue
		}
		n, err := strconv.ParseInt(string(f[1]), 10, 53)
		return n, err == nil && n >= 0
	}
	return 0, false
}
