package main

import (
	"os/exec"
	"slices"
	"strings"
)

// row is a claim, the commands that show it, and what holds their output against it.
type row struct {
	name, claim string
	commands    []string
	judge       func(f *finding, o []output) (why string) // why: nothing could be measured
	// elsewhere shows it where what it needs is not here, by a program that has to be there.
	elsewhere *elsewhere
}

type elsewhere struct {
	program, command string
	judge            func(f *finding, o output) (why string)
}

const register = program + "run --workload register -D 100ms "

// unlucky is who may lock 8 MiB only, as io_uring counts it: nobody, without capabilities.
const unlucky = "prlimit --memlock=8388608 setpriv --reuid=65534 --regid=65534 --clear-groups --bounding-set=-all " +
	"--inh-caps=-all env HOME=/nonexistent "

func rows() []row {
	return []row{
		{"R1", "registering costs a constant and a part for each page, of which huge pages need fewer",
			[]string{register + "--pattern repeated --arms none --offload none"}, costCurve, nil},
		{"R2", "what was registered when it was mapped costs a look-up, whatever its size: at least 5 times less at " +
			"4 KiB, 100 times from 1 MiB on",
			[]string{register + "--pattern repeated --arms none,prereg --pages base --offload none,hop -s 4K,64K,1M,16M"}, preregistered, nil},
		{"R3", "the detour to another kernel adds a constant to each registration, and nothing to a look-up",
			[]string{register + "--pattern repeated --arms none,prereg --pages base --offload none,hop,16us -s " +
				"4K,64K,1M --repeat 5"}, detour, nil},
		{"R4", "lazy unmapping takes at least 100 times less at 16 MiB, closes registrations in batches, and keeps " +
			"no more than its bound",
			[]string{register + "--pattern new --arms prereg,prereg+lazy --pages base --offload none -s 64K,1M,16M"},
			lazy, nil},
		{"R5", "no stale hit, and no operation in flight loses its pages: the ten tests pass",
			[]string{"go test -count=1 -v -run ^(TestSafe|TestNoByteLands) ./regcache",
				"go test -race -count=1 -v -run ^TestSafeManyThreads$ ./regcache"}, safe, nil},
		{"R6", "the hit ratio has its knee at the capacity, and a device without room (RLIMIT_MEMLOCK) is given some " +
			"by eviction",
			[]string{register + "--pattern set --arms cache --pages base --offload none -s 64K --working-set " +
				"32,64,96,128,256 --capacity 64",
				unlucky + register + "--pattern set --arms cache --pages base --offload none -s 64K --working-set " +
					"64,256 --capacity 4096"}, knee, nil},
		{"R7", "memory that a raw system call unmaps leaves a stale registration where nobody tells, and with no " +
			"source that does",
			[]string{register + "--pattern replaced --arms cache --pages base --offload none -s 64K"}, blindSpot, nil},
		{"R8", "an all-reduce of fresh buffers from 1 MiB on is faster where they were registered when they were " +
			"mapped (with mapping and unmapping); with buffers that are used again all is equal within the noise",
			[]string{program + "run --transport iwarp --workload allreduce --ranks 2 --arms none,cache,prereg+lazy " +
				"-s 1K,64K,1M,16M --buffers fresh,reused -D 100ms --repeat 5"}, reduced, nil},
		{"R9", "on-demand paging: the first touch is slow, warmed pages are as fast as pinned ones",
			[]string{register + "--transport verbs --pattern new --arms none,odp --pages base --offload none -s 1M"},
			demand,
			&elsewhere{"qemu-system-x86_64", "ci/lab/run --kernel backports ci/lab/odp.sh conform cost 3",
				demandInGuest}},
		{"R10", "hits scale to 32 threads: at most 100 ns with one, 200 ns each with two, and no deadlock with frees " +
			"beside them",
			[]string{register + "--pattern threads --arms cache --pages base --offload none -s 64K",
				"go test -race -count=1 -v -run ^(TestSafeManyThreads|TestManyUsersAtOnce)$ ./regcache"}, threads, nil},
	}
}

func names() (all []string) {
	for _, w := range rows() {
		all = append(all, w.name)
	}
	return all
}

// measure runs the commands and judges them.
func (w row) measure(r *runner) line {
	l := line{Name: w.name, Claim: w.claim, Commands: w.commands, Measured: []string{}}
	var all []output
	for _, c := range w.commands {
		all = append(all, r.do(c))
	}
	var f finding
	why := w.judge(&f, all)
	if e := w.elsewhere; e != nil && strings.HasPrefix(why, notRun) {
		if _, err := exec.LookPath(e.program); err == nil {
			f.note("here %s", why)
			l.Commands = append(slices.Clone(l.Commands), e.command)
			why = e.judge(&f, r.do(e.command))
		}
	}
	if f.measured != nil {
		l.Measured = f.measured
	}
	l.Missed = f.missed
	switch {
	case why != "" && strings.HasPrefix(why, notRun):
		l.Verdict, l.Why = notRun, strings.TrimPrefix(why, notRun+": ")
	case why != "":
		l.Verdict, l.Why, l.Missed = fail, why, nil
	case len(f.missed) > 0:
		l.Verdict = fail
	case len(f.measured) == 0: // no verdict without a figure
		l.Verdict, l.Why = fail, "nothing was measured"
	default:
		l.Verdict = pass
	}
	return l
}
