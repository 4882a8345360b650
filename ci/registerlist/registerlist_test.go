package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rdmaperf/rdmaperf/ci/targets"
	"github.com/rdmaperf/rdmaperf/reports"
)

// outputOf is what a command leaves that measured points, given by the members of their
// details.
func outputOf(t *testing.T, size int64, details ...string) output {
	t.Helper()
	var results []string
	for _, d := range details {
		results = append(results,
			fmt.Sprintf(`{"stack":"pin","label":"soft","workload":"register","op":"x","size_bytes":%d,"depth":1,"qps":1,"duration_ns":1,"operations":1,"errors":0,"verified":true,"register":{%s}}`, size, d))
	}
	file := filepath.Join(t.TempDir(), "d.json")
	doc := `{"schema":"rdmaperf/v1","started":"2026-11-24T00:00:00Z","command":["rdmaperf"],"environment":{"go":"go1","kernel":"6","cpu":"c","cpus":2,"version":"v"},"results":[` + strings.Join(results, ",") + "]}"
	if err := os.WriteFile(file, []byte(doc), 0o644); err != nil {
		t.Fatal(err)
	}
	d, err := targets.ReadDocument(file)
	if err != nil {
		t.Fatal(err)
	}
	return output{command: "c", doc: d}
}

func judged(judge func(*finding, []output) string, o ...output) (verdict string, f finding) {
	why := judge(&f, o)
	switch {
	case why != "":
		return why, f
	case len(f.missed) > 0:
		return fail, f
	case len(f.measured) == 0:
		return "nothing", f
	}
	return pass, f
}

const tenPass = `--- PASS: TestSafeAddressIsUsedAgain (0.1s)
    --- PASS: TestSafeAddressIsUsedAgain/mem (0.1s)
    --- SKIP: TestSafeAddressIsUsedAgain/pin (0.1s)
--- PASS: TestSafeUnmapInFlight (0s)
--- PASS: TestSafePartialUnmap (0s)
--- PASS: TestSafeMremap (0s)
--- PASS: TestSafeDontneed (0s)
--- PASS: TestSafeFork (0s)
--- PASS: TestSafeOverlap (0s)
--- PASS: TestSafeUpgrade (0s)
--- PASS: TestSafeManyThreads (0s)
--- PASS: TestSafeDeferredBytes (0s)
--- PASS: TestNoByteLandsInMemoryOfAnotherOwner (0s)
`

// One of the ten tests that is missing, or was never run, is no pass.
func TestSafetyNeedsAllTenTests(t *testing.T) {
	race := output{text: "--- PASS: TestSafeManyThreads (0s)\n"}
	for _, c := range []struct{ tests, race, want string }{
		{tenPass, race.text, pass},
		{tenPass + "--- PASS: TestSafeAnother (0s)\n", race.text, pass},
		{strings.Replace(tenPass, "--- PASS: TestSafeFork", "--- PASS: TestSafeAnother", 1), race.text, fail},
		{strings.Replace(tenPass, "--- PASS: TestSafeFork (0s)\n", "", 1), race.text, fail},
		{strings.Replace(tenPass, "--- PASS: TestSafeFork", "--- SKIP: TestSafeFork", 1), race.text, fail},
		{strings.Replace(tenPass, "--- PASS: TestSafeFork", "--- FAIL: TestSafeFork", 1), race.text,
			"TestSafeFork failed"},
		{strings.Replace(tenPass, "--- PASS: TestNoByte", "--- SKIP: TestNoByte", 1), race.text, fail},
		{tenPass, "", fail},
	} {
		if got, f := judged(safe, output{text: c.tests}, output{text: c.race}); !strings.Contains(got, c.want) {
			t.Errorf("%q with %q: %s, %v, want %s", c.tests, c.race, got, f.missed, c.want)
		}
	}
}

func set(buffers, hits, evictions int) string {
	return fmt.Sprintf(`"arm":"cache","working_set":%d,"capacity_regions":64,"set_hits":%d,"set_gets":1000,"cache":{"evictions":%d}`, buffers, hits, evictions)
}

// A detour is what most repeats add: one of them at another pace of the machine says nothing.
func TestADetourIsJudgedByPairs(t *testing.T) {
	run := func(added ...int) output {
		var all output
		for _, n := range []int64{4 * kib, 64 * kib, mib} {
			for i, more := range added {
				near := 1000 * (i + 1) // another pace each time
				for off, ns := range map[string]int{"none": near, "hop": near + 1, stated: near + more} {
					o := outputOf(t, n, fmt.Sprintf(`"arm":"none","offload":%q,"register":{"p50":%d}`, off, ns),
						fmt.Sprintf(`"arm":"prereg","offload":%q,"register":{"p50":30}`, off))
					if all.doc == nil {
						all = o
						continue
					}
					all.doc.Results = append(all.doc.Results, o.doc.Results...)
				}
			}
		}
		return all
	}
	for _, c := range []struct {
		added []int
		want  string
	}{{[]int{16000}, pass}, {[]int{12000}, fail}, {[]int{16000, 12000, 16000}, pass},
		{[]int{12000, 16000, 12000}, fail}, {[]int{33000, 33000, 16000}, fail}} {
		if got, f := judged(detour, run(c.added...)); got != c.want {
			t.Errorf("%v ns more: %s, %v", c.added, got, f.missed)
		}
	}
}

// A cost is a constant and a slope, and less with huge pages.
func TestCostsAreHeldAgainstConstantAndSlope(t *testing.T) {
	curve := func(one, some, many, huge int) output {
		point := func(pages string, ns int) string {
			return fmt.Sprintf(`"arm":"none","pages":%q,"register":{"p50":%d}`, pages, ns)
		}
		all := outputOf(t, 4*kib, point("base", one))
		for _, o := range []output{outputOf(t, 64*kib, point("base", some)), outputOf(t, 16*mib, point("base", many),
			point("thp", huge))} {
			all.doc.Results = append(all.doc.Results, o.doc.Results...)
		}
		return all
	}
	for _, c := range []struct {
		name string
		o    output
		want string
	}{
		{"as it should be", curve(900, 1900, 300000, 150000), pass},
		{"huge pages at the bound", curve(900, 1900, 300000, 200000), pass},
		{"huge pages beyond", curve(900, 1900, 300000, 201000), fail},
		{"no constant", curve(200, 1900, 300000, 150000), fail},
		{"no slope", curve(900, 1900, 60000, 30000), fail},
		{"no huge pages", curve(900, 1900, 300000, 0), fail},
		{"one size is missing", curve(900, 0, 300000, 150000), "not measured"},
	} {
		if got, f := judged(costCurve, c.o); !strings.Contains(got, c.want) {
			t.Errorf("%s: %s, %v", c.name, got, f.missed)
		}
	}
}

// The knee is where it should be, and a device without room makes evictions.
func TestHitRatioIsHeldAgainstWhatFits(t *testing.T) {
	sets := []string{set(32, 1000, 0), set(64, 1000, 0), set(96, 660, 9), set(128, 510, 9), set(256, 240, 9)}
	locked := []string{set(64, 1000, 0), set(256, 490, 9)}
	change := func(list []string, i int, s string) []string {
		list = append([]string{}, list...)
		list[i] = s
		return list
	}
	for name, c := range map[string]struct {
		sets, locked []string
		want         string
	}{
		"as it should":        {sets, locked, pass},
		"misses within":       {change(sets, 1, set(64, 900, 0)), locked, fail},
		"hits beyond":         {change(sets, 4, set(256, 1000, 0)), locked, fail},
		"one is missing":      {sets[:4], locked, fail},
		"no want of room":     {sets, change(locked, 1, set(256, 1000, 0)), fail},
		"evicted for nothing": {sets, change(locked, 0, set(64, 1000, 3)), fail},
	} {
		if got, f := judged(knee, outputOf(t, 65536, c.sets...), outputOf(t, 65536, c.locked...)); got != c.want {
			t.Errorf("%s: %s, %v", name, got, f.missed)
		}
	}
}

func TestStaleUsesAreThoseOfNoSourceAlone(t *testing.T) {
	source := func(s string, stale int) string {
		return fmt.Sprintf(`"arm":"cache","source":%q,"replaced":9,"stale_hits":%d`, s, stale)
	}
	for want, list := range map[string][]string{
		pass: {source("auto", 0), source("uffd", 0), source("none", 9)},
		fail: {source("auto", 1), source("uffd", 0), source("none", 9)},
	} {
		if got, f := judged(blindSpot, outputOf(t, 65536, list...)); got != want {
			t.Errorf("%v: %s, %v", list, got, f.missed)
		}
	}
	for _, list := range [][]string{{source("auto", 0), source("none", 0)}, {source("auto", 0)}} {
		if got, _ := judged(blindSpot, outputOf(t, 65536, list...)); got != fail {
			t.Errorf("%v: %s", list, got)
		}
	}
}

func TestThreadsAreHeldAgainstTheirBounds(t *testing.T) {
	hits := func(threads, ns int) string {
		return fmt.Sprintf(`"arm":"cache","threads":%d,"register":{"p50":%d},"deregister":{"p50":10},"each_ns":50`,
			threads, ns)
	}
	passed := output{text: "--- PASS: TestSafeManyThreads (0s)\n--- PASS: TestManyUsersAtOnce (0s)\n"}
	for _, c := range []struct {
		one, two int
		tests    output
		want     string
	}{{90, 190, passed, pass}, {91, 190, passed, fail}, {90, 191, passed, fail}, {90, 190, output{}, fail},
		{90, 190, output{code: 1}, "exit code 1"}} {
		if got, f := judged(threads, outputOf(t, 65536, hits(1, c.one), hits(2, c.two), hits(32, 5)),
			c.tests); !strings.Contains(got, c.want) {
			t.Errorf("%+v: %s, %v", c, got, f.missed)
		}
	}
}

// A command that ends otherwise than well has no verdict from what it left, and 77 says
// that something is not here.
func TestACommandThatFailsMeasuresNothing(t *testing.T) {
	for code, want := range map[int]string{0: "left no document", 1: "exit code 1", reports.ExitNotRun: notRun,
		-1: "exit code -1"} {
		for _, judge := range []func(*finding, []output) string{
			costCurve, preregistered, detour, lazy, knee, blindSpot, demand, threads} {
			if _, why := points(output{code: code, text: "rdmaperf: nothing here"}); !strings.Contains(why, want) {
				t.Errorf("exit code %d: %q", code, why)
			}
			if got, _ := judged(judge, output{code: code}, output{code: code}); got == pass || got == fail {
				t.Errorf("exit code %d: verdict %s", code, got)
			}
		}
	}
}

// guestText is what ci/lab/odp.sh prints, in short.
const guestText = `== rxe0 of Linux 7.3.4+deb13-amd64: CONFIG_INFINIBAND_ON_DEMAND_PAGING=y CONFIG_RDMA_RXE=m
acc/on-demand            must    xfail        xfail
acc/on-demand-page       must    pass         pass
measure                                   median  95 % of medians        of  target   verdict
4K, on demand: first touch over warmed      1.79  1.50 to 2.07            6  >= 1     pass
4K, warmed: on demand over pinned           1.24  0.81 to 1.72            6  <= 1.5   pass
4K, first use: on demand over pinned        1.48  0.97 to 1.97            6           
1M, on demand: first touch over warmed      1.85  1.79 to 2.02            6  >= 1     pass
1M, warmed: on demand over pinned           0.93  0.68 to 1.13            6  <= 1.5   pass
`

// What a guest shows of on-demand paging counts as its script judges it, and nothing is
// shown by a guest that did not run, or not all of it.
func TestOnDemandPagingMayBeAGuests(t *testing.T) {
	for _, c := range []struct {
		name   string
		code   int
		change [2]string
		missed int
		why    string
	}{
		{"as it should be", 0, [2]string{}, 0, ""},
		{"a bound missed", 3, [2]string{"2.07            6  >= 1     pass", "2.07            6  >= 1     fail"}, 1, ""},
		{"undecided", 3, [2]string{"2.02            6  >= 1     pass", "2.02            6  >= 1     undecided"}, 1, ""},
		{"no case ran", 0, [2]string{"acc/", "cqo/"}, 1, ""},
		{"a ratio was not measured", 0, [2]string{"1.85  1.79 to 2.02            6  >= 1     pass",
			"      not measured"}, 0, "3 of 4 ratios"},
		{"the script failed", 1, [2]string{}, 0, "exit code 1"},
		{"no guest", 77, [2]string{"==", "lab: NOT RUN: this machine has no apt\n=="}, 0, notRun +
			": no device with on-demand paging, nor a guest with one: this machine has no apt"},
	} {
		var f finding
		text := guestText
		if c.change[0] != "" {
			text = strings.ReplaceAll(text, c.change[0], c.change[1])
		}
		why := demandInGuest(&f, output{command: "ci/lab/run", code: c.code, text: text})
		if len(f.missed) != c.missed || c.why == "" && why != "" || !strings.Contains(why, c.why) {
			t.Errorf("%s: missed %q, why %q", c.name, f.missed, why)
		}
		if c.code == 0 && c.why == "" && !strings.Contains(strings.Join(f.measured, "\n"),
			"rxe0 of Linux 7.3.4+deb13-amd64: 1M, warmed: on demand over pinned: 0.93 (0.68 to 1.13)") {
			t.Errorf("%s: measured %q", c.name, f.measured)
		}
	}
}

func TestRowsBecomeTheExitCode(t *testing.T) {
	row := func(verdict string, missed ...string) line { return line{Name: "R1", Verdict: verdict, Missed: missed} }
	for want, list := range map[int][]line{
		reports.ExitOK:        {row(pass), row(notRun)},
		reports.ExitThreshold: {row(pass), row(fail, "too slow")},
		reports.ExitFailed:    {row(fail), row(fail, "too slow")},
		reports.ExitNotRun:    {row(notRun)},
	} {
		if got := reports.Code((&table{Rows: list}).outcome()); got != want {
			t.Errorf("%v: exit code %d, want %d", list, got, want)
		}
	}
	t1 := table{Rows: []line{{Name: "R5", Claim: "a|b", Commands: []string{"go test -run ^(A|B)$"},
		Measured: []string{"1"}, Missed: []string{"2"}, Verdict: fail}}}
	if s := t1.markdown(); !strings.Contains(s,
		"| R5 | a\\|b | `go test -run '^(A\\|B)$'` | 1<br>**missed:** 2 | fail |") {
		t.Errorf("table\n%s", s)
	}
}

func TestRowsAreR1ToR10(t *testing.T) {
	for i, w := range rows() {
		if w.name != fmt.Sprintf("R%d", i+1) || w.claim == "" || len(w.commands) == 0 || w.judge == nil {
			t.Errorf("%d: %+v", i, w)
		}
	}
	for _, args := range [][]string{{"-only", "R11"}, {"-only", ""}, {"x"}, {"-for", "0s"}} {
		if err := run(args); reports.Code(err) != reports.ExitUsage {
			t.Errorf("%v: %v", args, err)
		}
	}
}
