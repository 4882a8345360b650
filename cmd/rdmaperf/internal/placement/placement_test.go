package placement

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"golang.org/x/sys/unix"
)

// sysfs is a machine of some nodes with cores of two hyper-threads each, numbered as the
// kernel does it on most machines: first one of each core, then the other.
func sysfs(nodes, coresOfEach int, smt bool, governor string) (fstest.MapFS, []int) {
	root := fstest.MapFS{}
	file := func(name, text string) { root[name] = &fstest.MapFile{Data: []byte(text + "\n")} }
	cores := nodes * coresOfEach
	var all []int
	for n := range nodes {
		first, last := n*coresOfEach, (n+1)*coresOfEach-1
		list := fmt.Sprintf("%d-%d", first, last)
		if smt {
			list += fmt.Sprintf(",%d-%d", cores+first, cores+last)
		}
		file(fmt.Sprintf("sys/devices/system/node/node%d/cpulist", n), list)
	}
	file("sys/devices/system/node/has_cpu", "0-1")
	threads := 1
	if smt {
		threads = 2
	}
	for cpu := range cores * threads {
		all = append(all, cpu)
		dir := fmt.Sprintf("sys/devices/system/cpu/cpu%d/", cpu)
		siblings := fmt.Sprint(cpu % cores)
		if smt {
			siblings = fmt.Sprintf("%d,%d", cpu%cores, cpu%cores+cores)
		}
		file(dir+"topology/thread_siblings_list", siblings)
		if governor != "" {
			file(dir+"cpufreq/scaling_governor", governor)
		}
	}
	return root, all
}

func TestChoice(t *testing.T) {
	for _, c := range []struct {
		name             string
		nodes, cores     int
		smt              bool
		governor, device string
		node             int
		allowed          []int
		want             string
		keep             string
		warnings         []string
	}{
		{name: "one node takes the last two", nodes: 1, cores: 4, node: -1,
			want: "client CPU 3, server CPU 2: the last two allowed", keep: "[]"},
		{name: "CPUs of the adapter's node", nodes: 2, cores: 4, device: "mlx5_0", node: 0,
			want: "client CPU 3, server CPU 2: the last two of node 0, where mlx5_0 is", keep: "[0 1 2 3]"},
		{name: "the other node", nodes: 2, cores: 4, device: "mlx5_1", node: 1,
			want: "client CPU 7, server CPU 6: the last two of node 1, where mlx5_1 is", keep: "[4 5 6 7]"},
		{name: "two cores, not two hyper-threads", nodes: 1, cores: 2, smt: true, node: -1,
			want: "client CPU 3, server CPU 2: the last two allowed", keep: "[]"},
		{name: "hyper-threads of one core are told", nodes: 1, cores: 2, smt: true, node: -1, allowed: []int{1, 3},
			want: "client CPU 3, server CPU 1: the last two allowed", keep: "[]",
			warnings: []string{"CPUs 3 and 1 are hyper-threads of one core"}},
		{name: "past a hyper-thread of the client's core", nodes: 1, cores: 4, smt: true, node: -1,
			allowed: []int{1, 2, 3, 7}, want: "client CPU 7, server CPU 2: the last two cores allowed", keep: "[]"},
		{name: "not allowed on the adapter's node", nodes: 2, cores: 4, device: "mlx5_0", node: 0, allowed: []int{4, 5},
			want: "client CPU 5, server CPU 4: the last two allowed", keep: "[]",
			warnings: []string{"mlx5_0 is on NUMA node 0, and none of its CPUs may be used here"}},
		{name: "one CPU of the adapter's node", nodes: 2, cores: 4, device: "mlx5_0", node: 0, allowed: []int{3, 4, 5},
			want: "client CPU 5, server CPU 4: the last two allowed", keep: "[]",
			warnings: []string{"mlx5_0 is on NUMA node 0, and only one of its CPUs may be used here"}},
		{name: "nodes, and the device's is not known", nodes: 2, cores: 2, device: "rxe0", node: -1,
			want: "client CPU 3, server CPU 2: the last two allowed", keep: "[]",
			warnings: []string{"this machine has 2 NUMA nodes, and nothing says which one rxe0 is on"}},
		{name: "both on one node", nodes: 2, cores: 2, node: -1, allowed: []int{0, 1, 3},
			want: "client CPU 3, server CPU 1: the last two allowed", keep: "[]",
			warnings: []string{"CPU 3 is on NUMA node 1 and CPU 1 on node 0"}},
		{name: "governor", nodes: 1, cores: 2, governor: "powersave", node: -1,
			want: "client CPU 1, server CPU 0: the last two allowed", keep: "[]",
			warnings: []string{"governor powersave: the clock changes under load"}},
		{name: "a governor that is right", nodes: 1, cores: 2, governor: "performance", node: -1,
			want: "client CPU 1, server CPU 0: the last two allowed", keep: "[]"},
		{name: "one CPU", nodes: 1, cores: 1, node: -1, want: "nothing is pinned: of 1 CPU there is none for each side",
			keep: "[]"},
	} {
		root, all := sysfs(c.nodes, c.cores, c.smt, c.governor)
		if c.allowed != nil {
			all = c.allowed
		}
		if c.device != "" && c.node >= 0 {
			root["sys/class/infiniband/"+c.device+"/device/numa_node"] = &fstest.MapFile{
				Data: []byte(fmt.Sprintf("%d\n", c.node))}
		}
		if n := NodeOf(root, c.device); n != c.node {
			t.Errorf("%s: %s is on node %d, want %d", c.name, c.device, n, c.node)
		}
		got := Read(root, all).Choose(c.device, NodeOf(root, c.device))
		if got.String() != c.want || fmt.Sprint(got.Keep) != c.keep {
			t.Errorf("%s: %q, kept on %v; want %q and %s", c.name, got, got.Keep, c.want, c.keep)
		}
		if len(got.Warnings) != len(c.warnings) {
			t.Errorf("%s: warnings %q, want %d", c.name, got.Warnings, len(c.warnings))
			continue
		}
		for i, w := range c.warnings {
			if !strings.Contains(got.Warnings[i], w) {
				t.Errorf("%s: warning %q, want %q", c.name, got.Warnings[i], w)
			}
		}
	}
}

// CPUs that the user chose are remarked upon, too.
func TestFarFromTheDevice(t *testing.T) {
	root, all := sysfs(2, 2, false, "")
	m := Read(root, all)
	if s := m.Far("mlx5_0", 0, 3, 1); !strings.Contains(s, "CPU 3 is on NUMA node 1 and mlx5_0 on node 0") {
		t.Errorf("%q", s)
	}
	for _, s := range []string{m.Far("mlx5_0", 0, 1, 0), m.Far("mlx5_0", -1, 3, 2), m.Far("mlx5_0", 1, -1, 2)} {
		if s != "" {
			t.Errorf("%q, want nothing", s)
		}
	}
}

// A file of the kernel's that is none bends nothing.
func TestReadTakesAnything(t *testing.T) {
	for _, s := range []string{"", "x", "3-1", "-1", "1-", "0-99999999", "1,,2", "0x1"} {
		if got := parseList(s); got != nil {
			t.Errorf("%q: %v, want nothing", s, got)
		}
	}
	if got := parseList("8,0-2,1"); !slices.Equal(got, []int{0, 1, 2, 8}) {
		t.Errorf("0-2, 8: %v", got)
	}
	if n := NodeOf(fstest.MapFS{}, "../../etc"); n != -1 {
		t.Errorf("node %d of no device", n)
	}
	c := Read(fstest.MapFS{}, []int{0, 1}).Choose("", -1)
	if c.Client != 1 || c.Server != 0 || len(c.Warnings) != 0 {
		t.Errorf("without sysfs: %+v", c)
	}
}

func FuzzParseList(f *testing.F) {
	f.Add("0-3,8")
	f.Add("7-3")
	f.Fuzz(func(t *testing.T, s string) {
		got := parseList(s)
		if !slices.IsSorted(got) || len(got) > mostCPUs || len(got) > 0 && (got[0] < 0 || got[len(got)-1] >= mostCPUs) {
			t.Errorf("%q: %v", s, got)
		}
	})
}

const keptChild = "RDMAPERF_TEST_KEEP"

// A process is kept with all of its threads, and what it starts is.
func TestKeepHoldsThreadsAndChildren(t *testing.T) {
	if os.Getenv(keptChild) != "" {
		var set unix.CPUSet
		if err := unix.SchedGetaffinity(0, &set); err != nil {
			t.Fatal(err)
		}
		first := 0
		for !set.IsSet(first) {
			first++
		}
		if err := Keep([]int{first}); err != nil {
			t.Fatal(err)
		}
		tasks, err := os.ReadDir("/proc/self/task")
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range tasks {
			b, err := os.ReadFile("/proc/self/task/" + e.Name() + "/status")
			if err == nil && !strings.Contains(string(b), fmt.Sprintf("Cpus_allowed_list:\t%d\n", first)) {
				t.Errorf("thread %s may go elsewhere", e.Name())
			}
		}
		out, err := exec.Command("grep", "Cpus_allowed_list", "/proc/self/status").Output()
		if err != nil || string(out) != fmt.Sprintf("Cpus_allowed_list:\t%d\n", first) {
			t.Errorf("a child: %q, %v", out, err)
		}
		return
	}
	cmd := exec.Command(os.Args[0], "-test.run", "TestKeepHoldsThreadsAndChildren", "-test.v")
	cmd.Env = append(os.Environ(), keptChild+"=1")
	if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "--- PASS") {
		t.Errorf("%v:\n%s", err, out)
	}
}
