package main

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/rdmaperf/rdmaperf/ci/targets"
	"github.com/rdmaperf/rdmaperf/reports"
)

const (
	kib = 1 << 10
	mib = 1 << 20
)

func size(n int64) string { return reports.FormatSize(n) }

// costCurve is R1. That 16 pages cost less than 8 single ones, and 256 times the pages from
// 64 KiB to 16 MiB at least 32 times as much, is a constant and a slope; the bounds, and that
// huge pages cost a third less from 16 MiB on, are arbitrary and wide: most of what is left
// with them, on Linux 6.18, is io_uring's search for huge pages that it has counted already.
func costCurve(f *finding, o []output) string {
	all, why := points(o[0])
	if why != "" {
		return why
	}
	base, huge := map[int64]float64{}, map[int64]float64{}
	var text, faster []string
	for _, p := range all {
		switch ns := of(p.Register); {
		case p.Pages == "base":
			base[p.size] = ns
			text = append(text, size(p.size)+" "+duration(ns))
		case base[p.size] > 0 && ns > 0:
			huge[p.size] = ns
			faster = append(faster, fmt.Sprintf("%s %s, %sx less", size(p.size), duration(ns), number(base[p.size]/ns)))
		}
	}
	f.note("4-KiB pages: %s", strings.Join(text, ", "))
	if base[4*kib] == 0 || base[64*kib] == 0 || base[16*mib] == 0 {
		return "4K, 64K or 16M was not measured"
	}
	f.note("a constant of %s, and %s ns a page from 64K to 16M", duration(base[4*kib]),
		number((base[16*mib]-base[64*kib])/(4096-16)))
	f.want(base[64*kib] < 8*base[4*kib], "16 pages cost %sx of one", number(base[64*kib]/base[4*kib]))
	f.want(base[16*mib] > 32*base[64*kib], "16M cost only %sx of 64K", number(base[16*mib]/base[64*kib]))
	if len(huge) == 0 {
		f.want(false, "no huge pages were measured")
		return ""
	}
	f.note("huge pages: %s", strings.Join(faster, "; "))
	for n, ns := range huge {
		if n >= 16*mib {
			f.bound("huge pages at "+size(n), base[n]/ns, 1.5, true, "x less")
		}
	}
	return ""
}

// preregistered is R2. That look-ups of all sizes lie within 4 times of each other is wide,
// as they are shorter than what disturbs them.
func preregistered(f *finding, o []output) string {
	all, why := points(o[0])
	if why != "" {
		return why
	}
	var looks []float64
	for _, off := range []string{"none", "hop"} {
		var text []string
		for _, n := range []int64{4 * kib, 64 * kib, mib, 16 * mib} {
			dear, cheap := of(arm(all, "none", off, n).Register), of(arm(all, "prereg", off, n).Register)
			if dear == 0 || cheap == 0 {
				return size(n) + " was not measured"
			}
			looks = append(looks, cheap)
			text = append(text, fmt.Sprintf("%s %s for %s (%sx)", size(n), duration(cheap), duration(dear),
				number(dear/cheap)))
			if off == "none" && n != 64*kib {
				bound := 100.0
				if n < mib {
					bound = 5
				}
				f.bound(size(n)+": ", dear/cheap, bound, true, "x lower")
			}
		}
		f.note("offload %s: %s", off, strings.Join(text, ", "))
	}
	f.bound("the slowest look-up", slices.Max(looks), 1000, false, " ns")
	f.bound("the slowest over the fastest", slices.Max(looks)/slices.Min(looks), 4, false, "")
	return ""
}

const stated = "16µs" // as documents write it

// detour is R3. A stated time is spent in full, and more only by what a CPU is busy
// otherwise: twice is arbitrary.
func detour(f *finding, o []output) string {
	all, why := points(o[0])
	if why != "" {
		return why
	}
	for _, off := range []string{stated, "hop"} {
		var text []string
		for _, n := range []int64{4 * kib, 64 * kib, mib} {
			far, near, looks := repeats(all, "none", off, n), repeats(all, "none", "none", n),
				repeats(all, "prereg", off, n)
			if len(far) == 0 || len(far) != len(near) || len(looks) == 0 {
				return size(n) + " was not measured"
			}
			var more []float64 // of each repeat: the pace of the machine may change between two
			for i := range far {
				more = append(more, far[i]-near[i])
			}
			with, without, look, added := targets.Median(far), targets.Median(near), targets.Median(looks),
				targets.Median(more)
			text = append(text, fmt.Sprintf("%s %s and not %s (a look-up %s)", size(n), duration(with),
				duration(without), duration(look)))
			if off == stated {
				f.bound(size(n)+": added", added, 15e3, true, " ns")
				f.bound(size(n)+": added", added, 32e3, false, " ns")
			} else {
				f.want(added > 0, "%s: a hop costs nothing", size(n))
			}
			f.bound(size(n)+": a look-up with the detour", look, 1000, false, " ns")
		}
		f.note("with a detour of %s: %s", off, strings.Join(text, ", "))
	}
	return ""
}

// lazy is R4.
func lazy(f *finding, o []output) string {
	all, why := points(o[0])
	if why != "" {
		return why
	}
	for _, n := range []int64{64 * kib, mib, 16 * mib} {
		now, late := arm(all, "prereg", "none", n), arm(all, "prereg+lazy", "none", n)
		a, b := of(now.Unmap), of(late.Unmap)
		if a == 0 || b == 0 || late.Pool == nil {
			return size(n) + " was not measured"
		}
		f.note("%s: unmap %s, lazily %s (%sx less); registrations for %d buffers %d, for %d lazily %d; %d of %d "+
			"bytes deferred", size(n), duration(a), duration(b), number(a/b),
			now.Registrations, now.Cache["mem_regs"], late.Registrations, late.Cache["mem_regs"], late.Pool.Most,
			late.Pool.Bound)
		if n == 16*mib {
			f.bound("unmap of 16M", a/b, 100, true, "x lower")
		}
		f.want(late.Pool.Most <= late.Pool.Bound, "%s: %d bytes deferred, bound %d", size(n), late.Pool.Most,
			late.Pool.Bound)
		f.want(late.Cache["mem_regs"] < max(late.Registrations, 2), "%s: each buffer was registered", size(n))
	}
	return ""
}

var ended = regexp.MustCompile(`(?m)^( *)--- (PASS|FAIL|SKIP): (\S+)`)

// tests reads the output of go test -v: the outermost that passed, by name, and how many
// inside of them passed and were skipped.
func tests(o output) (passed map[string]bool, inner, skipped int, why string) {
	passed = map[string]bool{}
	for _, m := range ended.FindAllStringSubmatch(o.text, -1) {
		switch {
		case m[2] == "FAIL":
			return nil, 0, 0, fmt.Sprintf("%s: %s failed", o.command, m[3])
		case m[2] == "SKIP":
			skipped++
		case m[1] == "":
			passed[m[3]] = true
		default:
			inner++
		}
	}
	if o.code != 0 {
		return nil, 0, 0, fmt.Sprintf("%s: exit code %d: %s", o.command, o.code, o.why())
	}
	return passed, inner, skipped, ""
}

// theTen are the tests of safety. There may be more.
var theTen = [10]string{"AddressIsUsedAgain", "UnmapInFlight", "PartialUnmap", "Mremap", "Dontneed", "Fork", "Overlap",
	"Upgrade", "ManyThreads", "DeferredBytes"}

// safe is R5.
func safe(f *finding, o []output) string {
	passed, inner, skipped, why := tests(o[0])
	if why != "" {
		return why
	}
	ten := 0
	for _, name := range theTen {
		if passed["TestSafe"+name] {
			ten++
		} else {
			f.want(false, "TestSafe%s did not pass", name)
		}
	}
	f.note("%d of 10 tests pass, %d cases on mem, iwarp and pages pinned by io_uring, %d skipped; random owners: %v",
		ten, inner, skipped, passed["TestNoByteLandsInMemoryOfAnotherOwner"])
	f.want(passed["TestNoByteLandsInMemoryOfAnotherOwner"], "the test of random owners did not pass")
	raced, _, _, why := tests(o[1])
	if why != "" {
		return why
	}
	f.want(raced["TestSafeManyThreads"], "32 threads under the race detector did not pass")
	f.note("32 threads under the race detector: %v", raced["TestSafeManyThreads"])
	return ""
}

// knee is R6. Of buffers at random in a larger set, as many hit as fit; a tenth beside it is
// arbitrary.
func knee(f *finding, o []output) string {
	all, why := points(o[0])
	if why != "" {
		return why
	}
	var text []string
	for _, p := range all {
		if p.Gets == 0 {
			continue
		}
		got, want := float64(p.Hits)/float64(p.Gets), min(float64(p.Capacity)/float64(p.WorkingSet), 1)
		text = append(text, fmt.Sprintf("%d buffers %.4f", p.WorkingSet, got))
		f.want(got <= want+0.1 && got >= want-0.1 && (want < 1 || got > 0.999),
			"%d buffers: a hit ratio of %.4f, %.2f of them fit", p.WorkingSet, got, want)
	}
	f.note("hit ratio with room for 64: %s", strings.Join(text, ", "))
	f.want(len(text) == 5, "%d of 5 working sets were measured", len(text))
	all, why = points(o[1])
	if why != "" {
		return why
	}
	small, ok1 := the(all, func(p point) bool { return p.WorkingSet == 64 })
	large, ok2 := the(all, func(p point) bool { return p.WorkingSet == 256 })
	if !ok1 || !ok2 || large.Gets == 0 {
		return "the working sets under RLIMIT_MEMLOCK were not measured"
	}
	got := float64(large.Hits) / float64(large.Gets)
	f.note("8 MiB may be locked, room for 4096: 4 MiB of buffers %d evictions, 16 MiB %d with a hit ratio of %.4f",
		small.Cache["evictions"], large.Cache["evictions"], got)
	f.want(small.Cache["evictions"] == 0, "evictions where all fits")
	f.want(large.Cache["evictions"] > 0 && got > 0.4 && got < 0.6,
		"16 MiB where 8 may be locked: %d evictions, hit ratio %.4f, wanted about 0.5", large.Cache["evictions"], got)
	return ""
}

// blindSpot is R7.
func blindSpot(f *finding, o []output) string {
	all, why := points(o[0])
	if why != "" {
		return why
	}
	seen := map[string]bool{}
	for _, p := range all {
		seen[p.Source] = true
		f.note("%s: %d stale of %d; munmap %s", p.Source, p.Stale, p.Replaced, duration(of(p.Unmap)))
		f.want(p.Replaced > 0, "%s: no memory was replaced", p.Source)
		f.want((p.Stale > 0) == (p.Source == "none"), "%s: %d stale", p.Source, p.Stale)
	}
	for source, why := range all[0].Absent {
		f.note("%s is not granted here: %s", source, why)
	}
	f.want(seen["none"] && seen["auto"], "none and auto were not both measured")
	return ""
}

// reduced is R8. Repeats ran one behind the other, so a ratio's scatter decides; that less
// than a fifth is little is arbitrary.
func reduced(f *finding, o []output) string {
	if o[0].code == reports.ExitNotRun {
		return notRun + ": " + o[0].why()
	}
	if o[0].code != 0 || o[0].doc == nil {
		return fmt.Sprintf("%s: exit code %d: %s", o[0].command, o[0].code, o[0].why())
	}
	type key struct {
		arm, buffers, op string
		size             int64
	}
	times := map[key][]float64{}
	for i := range o[0].doc.Results {
		r := &o[0].doc.Results[i]
		var d struct {
			Arm, Buffers string
			Total        latency
		}
		if raw := r.Others.Get("allreduce"); raw == nil || json.Unmarshal(raw, &d) != nil {
			continue
		}
		k := key{d.Arm, d.Buffers, r.Op, r.SizeBytes}
		times[k] = append(times[k], d.Total.P50)
	}
	// gain is of the algorithm that is the better one without registrations that are kept.
	gain := func(arm, buffers string, n int64) []float64 {
		base := key{"none", buffers, "ring", n}
		if h := (key{"none", buffers, "halving", n}); len(times[h]) > 0 && (len(times[base]) == 0 ||
			targets.Median(times[h]) < targets.Median(times[base])) {
			base = h
		}
		other := key{arm, buffers, base.op, n}
		var all []float64
		for i := range min(len(times[base]), len(times[other])) {
			if times[other][i] > 0 {
				all = append(all, times[base][i]/times[other][i])
			}
		}
		return all
	}
	for _, arm := range []string{"cache", "prereg+lazy"} {
		for _, buffers := range []string{"fresh", "reused"} {
			var text []string
			for _, n := range []int64{kib, 64 * kib, mib, 16 * mib} {
				g := gain(arm, buffers, n)
				if len(g) == 0 {
					return fmt.Sprintf("%s with %s buffers of %s was not measured", arm, buffers, size(n))
				}
				lo, hi := targets.Interval(g)
				text = append(text, fmt.Sprintf("%s %.2f (%.2f to %.2f)", size(n), targets.Median(g), lo, hi))
				switch {
				case buffers == "fresh" && arm == "prereg+lazy" && n >= mib:
					f.want(targets.Target{Bound: 1}.JudgeAll(g) != targets.Fail,
						"%s, fresh buffers of %s: %.2f to %.2f times as fast", arm, size(n), lo, hi)
					f.want(targets.Median(g) > 1, "%s, fresh buffers of %s: no gain, %.2f", arm, size(n),
						targets.Median(g))
				case buffers == "reused":
					f.want(lo < 1.2 && hi > 0.8, "%s, reused buffers of %s: %.2f to %.2f times as fast", arm, size(n),
						lo, hi)
				}
			}
			f.note("%s over none, %s buffers: %s", arm, buffers, strings.Join(text, ", "))
		}
	}
	return ""
}

// demand is R9. That a warmed page is at most half again as slow as a pinned one is
// arbitrary.
func demand(f *finding, o []output) string {
	all, why := points(o[0])
	if why != "" {
		return why
	}
	odp, ok := the(all, func(p point) bool { return p.Arm == "odp" })
	if !ok {
		why := "no device with on-demand paging"
		for _, s := range all[0].Absent {
			why = s
		}
		return notRun + ": " + why
	}
	pinned := arm(all, "none", "none", mib)
	first, warm, plain := of(odp.Use), of(odp.Again), of(pinned.Again)
	if first == 0 || warm == 0 || plain == 0 {
		return "1M was not measured"
	}
	f.note("1M: first touch %s, warmed %s, pinned %s", duration(first), duration(warm), duration(plain))
	f.want(first > warm, "the first touch is no slower")
	f.bound("warmed over pinned", warm/plain, 1.5, false, "")
	return ""
}

// threads is R10.
func threads(f *finding, o []output) string {
	all, why := points(o[0])
	if why != "" {
		return why
	}
	var text []string
	counts := map[int]bool{}
	for _, p := range all {
		each := of(p.Register) + of(p.Deregister)
		counts[p.Threads] = true
		text = append(text, fmt.Sprintf("%d: %.0f ns, %.1f M a second", p.Threads, each,
			float64(p.Threads)*1e3/max(p.Each, 1)))
		switch p.Threads {
		case 1:
			f.bound("one thread", each, 100, false, " ns a hit and its end")
		case 2:
			f.bound("each of two threads", each, 200, false, " ns a hit and its end")
		}
	}
	f.note("a hit and its end, and pairs of all threads: %s", strings.Join(text, "; "))
	f.want(counts[1] && counts[2] && counts[32], "1, 2 and 32 threads were not all measured")
	passed, _, _, why := tests(o[1])
	if why != "" {
		return why
	}
	f.note("gets, puts and frees of 32 threads at once, under the race detector: %d of 2 tests pass", len(passed))
	f.want(len(passed) == 2, "%d of 2 tests passed", len(passed))
	return ""
}
