package reports

import (
	"math"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

func tree(files map[string]string) fstest.MapFS {
	m := fstest.MapFS{}
	for name, content := range files {
		m[name] = &fstest.MapFile{Data: []byte(content)}
	}
	return m
}

func TestEnvironmentOfAKnownMachine(t *testing.T) {
	got := collect(tree(map[string]string{
		"proc/sys/kernel/hostname":  "node7\n",
		"proc/sys/kernel/osrelease": "6.12.9-rt1\n",
		"proc/cpuinfo": "processor\t: 0\nmodel name\t: Fast CPU: v2 @ 3 GHz\nflags\t\t: fpu sse2 " +
			"hypervisor lm\n\nprocessor\t: 1\nmodel name\t: Other\n",
		"proc/meminfo": "MemTotal:       24684092 kB\nMemFree:  1 kB\n",
		"proc/self/limits": "Limit  Soft Limit  Hard Limit  Units\nMax open files  20000  20000  files\nMax " +
			"locked memory         8388608              unlimited            bytes     \n",
		"sys/devices/system/clocksource/clocksource0/current_clocksource": "tsc\n",
		"sys/devices/system/node/node0/cpulist":                           "0-1\n",
		"sys/devices/system/node/node1/cpulist":                           "2-3\n",
		"sys/devices/system/node/possible":                                "0-1\n",
		"sys/devices/system/cpu/cpu0/cpufreq/scaling_governor":            "powersave\n",
		"sys/devices/system/cpu/cpu1/cpufreq/scaling_governor":            "performance\n",
		"sys/devices/system/cpu/cpu10/cpufreq/scaling_governor":           "powersave\n",
	}))
	limit := int64(8388608)
	want := Environment{
		Version: got.Version, Commit: got.Commit, Build: got.Build, Go: runtime.Version(), OS: runtime.GOOS,
		Arch:     runtime.GOARCH,
		Hostname: "node7", Kernel: "6.12.9-rt1", CPU: "Fast CPU: v2 @ 3 GHz", CPUs: runtime.NumCPU(),
		Hypervisor: true, Governors: []string{"performance", "powersave"}, NUMANodes: 2, Clock: "tsc",
		MemoryBytes: 24684092 << 10, MemlockBytes: &limit, GOMAXPROCS: runtime.GOMAXPROCS(0), GOGC: got.GOGC,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("environment (-want +got):\n%s", diff)
	}
	if got.Version == "" || got.GOGC == "" {
		t.Errorf("version, gogc = %q, %q, want both known", got.Version, got.GOGC)
	}
}

// The schema requires these fields on every machine.
func TestEnvironmentWithoutProcAndSys(t *testing.T) {
	e := collect(fstest.MapFS{})
	if e.Kernel == "" || e.CPU == "" || e.CPUs < 1 || e.Go == "" || e.Version == "" {
		t.Errorf("environment of an empty tree lacks a required field: %+v", e)
	}
	if e.MemlockBytes != nil || e.NUMANodes != 0 || e.Governors != nil {
		t.Errorf("environment of an empty tree invents figures: %+v", e)
	}
}

func TestEnvironmentVariants(t *testing.T) {
	e := collect(tree(map[string]string{
		"proc/cpuinfo":     "processor\t: 0\nCPU implementer\t: 0x41\nCPU part\t: 0xd0c\n",
		"proc/self/limits": "Max locked memory         unlimited            unlimited            bytes\n",
	}))
	if want := runtime.GOARCH + " implementer 0x41 part 0xd0c"; e.CPU != want {
		t.Errorf("cpu without a model name = %q, want %q", e.CPU, want)
	}
	if e.MemlockBytes == nil || *e.MemlockBytes != -1 {
		t.Errorf("memlock = %v, want -1 for unlimited", e.MemlockBytes)
	}
	for _, limits := range []string{"", "Max locked memory", "Max locked memory  many  many  bytes\n"} {
		if e := collect(tree(map[string]string{"proc/self/limits": limits})); e.MemlockBytes != nil {
			t.Errorf("memlock of %q = %d, want unknown", limits, *e.MemlockBytes)
		}
	}
	board := collect(tree(map[string]string{"sys/firmware/devicetree/base/model": "Some Board\x00"}))
	if board.CPU != "Some Board" {
		t.Errorf("cpu by the device tree = %q, want %q", board.CPU, "Some Board")
	}
}

func TestGOGCIsTheOneInForce(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(150))
	for percent, want := range map[int]string{150: "150", math.MaxInt32: "2147483647", -1: "off"} {
		if debug.SetGCPercent(percent); gogc() != want {
			t.Errorf("GOGC %q, want %q", gogc(), want)
		}
	}
}

// Without the linker's word, a module's version is better than the commit, and a build of neither says so.
func TestVersionOfABuild(t *testing.T) {
	setting := func(pairs ...string) (all []debug.BuildSetting) {
		for i := 0; i < len(pairs); i += 2 {
			all = append(all, debug.BuildSetting{Key: pairs[i], Value: pairs[i+1]})
		}
		return all
	}
	const commit = "0123456789abcdef0123456789abcdef01234567"
	for _, c := range []struct {
		module   string
		settings []debug.BuildSetting
		want     string
	}{
		{"", nil, "0.1.0-dev"},
		{"(devel)", nil, "0.1.0-dev"},
		{"v0.0.0-20261128180000-0123456789ab+dirty", setting("vcs.revision", commit), "0.1.0-dev-0123456789ab"},
		{"v1.2.3", setting("vcs.revision", commit), "v1.2.3"},
		{"(devel)", setting("vcs.revision", commit), "0.1.0-dev-0123456789ab"},
		{"(devel)", setting("vcs.revision", commit[:12], "vcs.modified", "true"), "0.1.0-dev-0123456789ab+dirty"},
		{"", setting("vcs.revision", commit[:11], "vcs.modified", "false", "vcs.time", "true", "vcs",
			"0123456789abcdef"), "0.1.0-dev"},
	} {
		if got := version(&debug.BuildInfo{Main: debug.Module{Version: c.module},
			Settings: c.settings}); got != c.want {
			t.Errorf("%q %v: %q, want %q", c.module, c.settings, got, c.want)
		}
	}
}

func TestLinkerVersionWins(t *testing.T) {
	defer func(old string) { Version = old }(Version)
	Version = "v1.2.3"
	if got := version(&debug.BuildInfo{}); got != "v1.2.3" {
		t.Errorf("version() = %q, want the linker's", got)
	}
}

func TestBuildSaysWhatItIsMadeOf(t *testing.T) {
	made := []debug.BuildSetting{{Key: "-race", Value: "true"}, {Key: "CGO_ENABLED", Value: "1"},
		{Key: "GOAMD64", Value: "v3"}, {Key: "vcs.revision", Value: "0123456789abcdef"},
		{Key: "vcs.modified", Value: "true"}}
	for _, c := range [][2]string{{build(made), "cgo, GOAMD64=v3, race"}, {build(nil), "no cgo"},
		{commit(made), "0123456789abcdef+dirty"}, {commit(nil), ""}} {
		if c[0] != c[1] {
			t.Errorf("%q, want %q", c[0], c[1])
		}
	}
	Commit = "feed"
	defer func() { Commit = "" }()
	if got := commit(made[:4]); got != "feed" {
		t.Errorf("the linker's commit is %q", got)
	}
	if e := Collect(); e.Build == "" || e.Commit != "feed" {
		t.Errorf("environment %q %q", e.Commit, e.Build)
	}
}

func TestTheDeepestIdleStateIsNamed(t *testing.T) {
	const dir = "sys/devices/system/cpu/cpu0/cpuidle/"
	states := map[string]string{
		dir + "state0/name": "POLL\n", dir + "state0/latency": "0\n", dir + "state0/disable": "0\n",
		dir + "state1/name": "C1\n", dir + "state1/latency": "2\n",
		dir + "state2/name": "C6\n", dir + "state2/latency": "133\n", dir + "state2/disable": "0\n",
	}
	check := func(what string, states map[string]string, want string) {
		t.Helper()
		if got := idleState(tree(states)); got != want {
			t.Errorf("%s: %q, want %q", what, got, want)
		}
	}
	check("three states", states, "idle state C6 (133 us to leave)")
	states[dir+"state2/disable"] = "1\n"
	check("with C6 disabled", states, "idle state C1 (2 us to leave)")
	states[dir+"state3/name"], states[dir+"state3/latency"] = "C1E\n", "2\n"
	check("with a second state as deep", states, "idle state C1 (2 us to leave)")
	check("a state that takes no time to leave", map[string]string{dir + "state0/name": "POLL\n",
		dir + "state0/latency": "0\n"}, "idle state POLL (0 us to leave)")
	check("without cpuidle", nil, "")
}

// A figure of a stack that sleeps is next to what a wake-up takes, and one of a stack that polls is not.
func TestStacksThatSleepStandBesideTheWakeUp(t *testing.T) {
	d := &Document{Environment: Environment{IdleState: "idle state C6 (133 us to leave)",
		Wakeup: &Wakeup{P50: 24_100, P99: 80_300, Samples: 150}},
		Results: []Result{{Stack: "iwarp", Polling: "busy"}}}
	check := func(what, want string) {
		t.Helper()
		if got := strings.Join(WakeupLines(d), "\n"); got != want {
			t.Errorf("%s: %q, want %q", what, got, want)
		}
	}
	const takes = "tcp sleeps between messages, and a wake-up of this machine takes 24.10 us (p99 80.30 us) "
	check("a stack that polls", "")
	d.Results = append(d.Results, Result{Stack: "tcp", Polling: "event"},
		Result{Stack: "tcp", Polling: "event", SizeBytes: 9})
	check("one that sleeps", takes+"out of idle state C6 (133 us to leave): against polling stacks, also report a run "+
		"with --awake")
	d.Environment.Awake = "something"
	check("kept awake", takes+"with its CPUs kept awake: against polling stacks, also report a run without --awake")
	d.Environment.Wakeup = nil
	check("not measured", "")
}
