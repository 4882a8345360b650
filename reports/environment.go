package reports

import (
	"cmp"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"slices"
	"strconv"
	"strings"

	"github.com/rdmaperf/rdmaperf/reports/view"
)

// Version is the release, set by the linker (-X); empty: by the build information.
var Version string

// Next is the release that this source will be part of.
const Next = "0.1.0"

// Environment is what has to be the same for two figures to be comparable; what is not known is empty.
type Environment struct {
	Version    string   `json:"version"`          // of rdmaperf
	Commit     string   `json:"commit,omitempty"` // of the source, "+dirty" behind it where it had changes
	Build      string   `json:"build,omitempty"`  // how the binary was made: "cgo, GOAMD64=v1"
	Go         string   `json:"go"`
	OS         string   `json:"os,omitempty"`
	Arch       string   `json:"arch,omitempty"`
	Hostname   string   `json:"hostname,omitempty"`
	Kernel     string   `json:"kernel"`
	CPU        string   `json:"cpu"`                  // model name
	CPUs       int      `json:"cpus"`                 // usable by this process
	Hypervisor bool     `json:"hypervisor,omitempty"` // a virtual machine: expect noise
	Governors  []string `json:"governors,omitempty"`  // distinct cpufreq governors
	NUMANodes  int      `json:"numa_nodes,omitempty"`
	Clock      string   `json:"clocksource,omitempty"`

	MemoryBytes int64 `json:"memory_bytes,omitempty"`
	// MemlockBytes is the soft limit on locked memory; −1 is unlimited, nil unknown.
	MemlockBytes *int64 `json:"memlock_bytes,omitempty"`

	GOMAXPROCS int    `json:"gomaxprocs,omitempty"`
	GOGC       string `json:"gogc,omitempty"` // percent, or off
	// Wakeup is how long this machine takes to wake a thread; nil: not measured.
	Wakeup *Wakeup `json:"wakeup,omitempty"`
	// IdleState is the deepest that the kernel's CPUs fall into, in words; empty: not known.
	IdleState string `json:"idle_state,omitempty"`
	// Awake says what kept the CPUs from falling asleep, where that was asked for.
	Awake string `json:"awake,omitempty"`

	// Details holds what only the caller knows, such as driver and firmware.
	Details map[string]string `json:"details,omitempty"`
}

// Collect describes this process and its machine. It reads a few files.
func Collect() Environment { return collect(os.DirFS("/")) }

func collect(root fs.FS) Environment {
	nodes, _ := fs.Glob(root, "sys/devices/system/node/node[0-9]*")
	info, ok := debug.ReadBuildInfo()
	if !ok {
		info = &debug.BuildInfo{}
	}
	e := Environment{
		Version:    version(info),
		Commit:     commit(info.Settings),
		Build:      build(info.Settings),
		Go:         runtime.Version(),
		OS:         runtime.GOOS,
		Arch:       runtime.GOARCH,
		Hostname:   readLine(root, "proc/sys/kernel/hostname"),
		Kernel:     cmp.Or(readLine(root, "proc/sys/kernel/osrelease"), "unknown"),
		CPUs:       runtime.NumCPU(),
		Governors:  governors(root),
		NUMANodes:  len(nodes),
		Clock:      readLine(root, "sys/devices/system/clocksource/clocksource0/current_clocksource"),
		GOMAXPROCS: runtime.GOMAXPROCS(0),
		GOGC:       gogc(),

		MemlockBytes: memlock(root),
		IdleState:    idleState(root),
	}
	e.CPU, e.Hypervisor = cpuInfo(root)
	if kib, err := strconv.ParseInt(strings.TrimSuffix(field(root, "proc/meminfo", "MemTotal"), " kB"), 10,
		64); err == nil {
		e.MemoryBytes = kib << 10
	}
	return e
}

func version(info *debug.BuildInfo) string {
	if Version != "" {
		return Version
	}
	// A checkout without a tag has a pseudo-version of v0.0.0 (go.dev/ref/mod), which says no more than its commit.
	if v := info.Main.Version; v != "" && v != "(devel)" && !strings.HasPrefix(v, "v0.0.0-") {
		return v
	}
	short := ""
	if revision := setting(info.Settings, "vcs.revision"); len(revision) >= 12 {
		short = "-" + revision[:12]
	}
	return Next + "-dev" + short + dirty(info.Settings)
}

func gogc() string {
	s := []metrics.Sample{{Name: "/gc/gogc:percent"}}
	metrics.Read(s)
	if s[0].Value.Kind() != metrics.KindUint64 {
		return ""
	}
	if v := s[0].Value.Uint64(); v <= math.MaxInt32 {
		return strconv.FormatUint(v, 10)
	}
	return "off"
}

// cpuInfo tells the CPUID hypervisor bit, too. Only x86 kernels give a model name; elsewhere the board's has to do.
func cpuInfo(root fs.FS) (model string, hypervisor bool) {
	const cpuinfo = "proc/cpuinfo"
	part := field(root, cpuinfo, "CPU part")
	if part != "" {
		part = fmt.Sprintf("%s implementer %s part %s", runtime.GOARCH, field(root, cpuinfo, "CPU implementer"), part)
	}
	model = cmp.Or(field(root, cpuinfo, "model name"),
		strings.TrimRight(readLine(root, "sys/firmware/devicetree/base/model"), "\x00"), part, runtime.GOARCH)
	return model, slices.Contains(strings.Fields(field(root, cpuinfo, "flags")), "hypervisor")
}

func governors(root fs.FS) []string {
	files, _ := fs.Glob(root, "sys/devices/system/cpu/cpu[0-9]*/cpufreq/scaling_governor")
	var found []string
	for _, f := range files {
		if g := readLine(root, f); g != "" {
			found = append(found, g)
		}
	}
	slices.Sort(found)
	return slices.Compact(found)
}

func memlock(root fs.FS) *int64 {
	b, _ := fs.ReadFile(root, "proc/self/limits")
	for line := range strings.Lines(string(b)) {
		rest, ok := strings.CutPrefix(line, "Max locked memory")
		columns := strings.Fields(rest)
		if !ok || len(columns) == 0 {
			continue
		}
		limit, err := strconv.ParseInt(columns[0], 10, 64)
		if columns[0] == "unlimited" {
			limit, err = -1, nil
		}
		if err != nil {
			return nil
		}
		return &limit
	}
	return nil
}

func field(root fs.FS, name, key string) string {
	b, _ := fs.ReadFile(root, name)
	for line := range strings.Lines(string(b)) {
		if k, v, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(k) == key {
			return strings.TrimSpace(v)
		}
	}
	return ""
}

func readLine(root fs.FS, name string) string {
	b, _ := fs.ReadFile(root, name)
	line, _, _ := strings.Cut(string(b), "\n")
	return strings.TrimSpace(line)
}

// Commit is the full hash of the source, set by the linker (-X); empty: by the build information.
var Commit string

func commit(settings []debug.BuildSetting) string {
	of := cmp.Or(Commit, setting(settings, "vcs.revision"))
	return view.When(of != "", of+dirty(settings))
}

func dirty(settings []debug.BuildSetting) string {
	return view.When(setting(settings, "vcs.modified") == "true", "+dirty")
}

func build(settings []debug.BuildSetting) string {
	parts := []string{"no cgo"}
	if setting(settings, "CGO_ENABLED") == "1" {
		parts[0] = "cgo"
	}
	for _, key := range []string{"GOAMD64", "GOARM64", "-tags", "-gcflags", "GOEXPERIMENT"} {
		if v := setting(settings, key); v != "" {
			parts = append(parts, strings.TrimPrefix(key, "-")+"="+v)
		}
	}
	for _, key := range []string{"-race", "-trimpath"} {
		if setting(settings, key) == "true" {
			parts = append(parts, key[1:])
		}
	}
	return strings.Join(parts, ", ")
}

func setting(settings []debug.BuildSetting, key string) string {
	s, _ := view.First(settings, func(s debug.BuildSetting) bool { return s.Key == key })
	return s.Value
}

// Wakeup is the time in ns from the write to an eventfd until the thread that waited, on another CPU, has read the
// clock.
type Wakeup struct {
	P50     float64 `json:"p50"`
	P99     float64 `json:"p99"`
	Samples int     `json:"samples"`
}

// String reads "wakes a thread in 24.1 us, p99 80.3 us".
func (w *Wakeup) String() string {
	return "wakes a thread in " + view.Usec(w.P50) + " us, p99 " + view.Usec(w.P99) + " us"
}

// Sleeps tells whether threads sleep between two messages, so that the machine's wake-up is part of the figures.
func (r *Result) Sleeps() bool { return r.Polling == PollingEvent || r.Waits == PollingEvent }

// WakeupLines say of the stacks that sleep what a wake-up takes; none where it was not measured.
func WakeupLines(d *Document) []string {
	w := d.Environment.Wakeup
	stacks := view.Unique(view.Only(Pointers(d.Results), (*Result).Sleeps), func(r *Result) string { return r.Stack })
	if w == nil || len(stacks) == 0 {
		return nil
	}
	s := fmt.Sprintf("%s sleep%s between messages, and a wake-up of this machine takes %s us (p99 %s us)",
		strings.Join(stacks, ", "), view.When(len(stacks) == 1, "s"), view.Usec(w.P50), view.Usec(w.P99))
	if d.Environment.Awake != "" {
		return []string{s + " with its CPUs kept awake: against polling stacks, also report a run without --awake"}
	}
	from := d.Environment.IdleState
	return []string{s + view.When(from != "", " out of "+from) +
		": against polling stacks, also report a run with --awake"}
}

// idleState is the deepest idle state that the kernel may enter on the first CPU (cpuidle); empty where it knows of
// none.
func idleState(root fs.FS) string {
	dirs, _ := fs.Glob(root, "sys/devices/system/cpu/cpu0/cpuidle/state*")
	name, deepest := "", int64(-1)
	for _, dir := range dirs {
		latency, err := strconv.ParseInt(readLine(root, path.Join(dir, "latency")), 10, 64)
		if err != nil || latency <= deepest || readLine(root, path.Join(dir, "disable")) == "1" {
			continue
		}
		name, deepest = readLine(root, path.Join(dir, "name")), latency
	}
	return view.When(name != "", fmt.Sprintf("idle state %s (%d us to leave)", name, deepest))
}
