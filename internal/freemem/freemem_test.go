package freemem

import (
	"errors"
	"os"
	"testing"
)

func TestAvailableMemoryIsTheSmallestOfWhatLimitsIt(t *testing.T) {
	meminfo := "MemTotal:  8000 kB\nMemAvailable:    4000 kB\n"
	for _, c := range []struct {
		name  string
		files map[string]string
		want  int64
	}{
		{"nothing tells", nil, -1},
		{"the machine alone", map[string]string{"/proc/meminfo": meminfo}, 4000 << 10},
		{"version 2", map[string]string{"/proc/meminfo": meminfo, "/proc/self/cgroup": "0::/a/b\n",
			"/sys/fs/cgroup/a/b/memory.max": "1000000\n", "/sys/fs/cgroup/a/b/memory.current": "400000\n",
			"/sys/fs/cgroup/a/b/memory.stat": "anon 5\ninactive_file 1000\n"}, 601000},
		{"a parent's limit", map[string]string{"/proc/self/cgroup": "0::/a/b\n",
			"/sys/fs/cgroup/a/b/memory.max": "max\n", "/sys/fs/cgroup/a/b/memory.current": "1\n",
			"/sys/fs/cgroup/a/memory.max": "900\n", "/sys/fs/cgroup/a/memory.current": "300\n"}, 600},
		{"version 1", map[string]string{"/proc/meminfo": meminfo,
			"/proc/self/cgroup":                             "9:name=systemd:/\n4:cpu,memory:/x\n",
			"/sys/fs/cgroup/memory/x/memory.limit_in_bytes": "500\n",
			"/sys/fs/cgroup/memory/x/memory.usage_in_bytes": "200\n",
			"/sys/fs/cgroup/memory/x/memory.stat":           "total_inactive_file 7\n"}, 307},
		{"above its limit", map[string]string{"/proc/self/cgroup": "0::/\n", "/sys/fs/cgroup/memory.max": "10\n",
			"/sys/fs/cgroup/memory.current": "20\n"}, 0},
		{"noise", map[string]string{"/proc/meminfo": "MemAvailable: many kB\nMemAvailable:\n",
			"/proc/self/cgroup": ":::\n0::\n::/..\nx"}, -1},
	} {
		got := available(func(name string) ([]byte, error) {
			if text, ok := c.files[name]; ok {
				return []byte(text), nil
			}
			return nil, os.ErrNotExist
		})
		if got != c.want {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
	}
}

func FuzzAvailable(f *testing.F) {
	f.Add("MemAvailable: 1 kB\n", "0::/a\n", "5")
	f.Fuzz(func(t *testing.T, meminfo, cgroup, text string) {
		n := available(func(name string) ([]byte, error) {
			switch name {
			case "/proc/meminfo":
				return []byte(meminfo), nil
			case "/proc/self/cgroup":
				return []byte(cgroup), nil
			}
			if len(text)%2 == 0 {
				return nil, errors.New("no such file")
			}
			return []byte(text), nil
		})
		if n < -1 {
			t.Errorf("%d bytes", n)
		}
	})
}
