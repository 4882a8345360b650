package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Under the race detector these are left out. Tests whose names end so judge how much is
// allocated, which says nothing of a build that the detector's instructions are in; those
// that begin with TestBrowser wait for a browser, another program, to show a finished file.
// The last is a part of the contract of sessions, likewise of allocations: sync.Pool loses
// some of what it is given under the detector.
const notUnderRace = `Allocates?(Nothing)?$|^TestBrowser|^TestSessions$/^post_and_poll_allocate_nothing$`

// raceChecks is what a property is tried on under the race detector, for the races and
// not for the property: ten times fewer than without it. Arbitrary.
const raceChecks = 10

// limit is how long one package may take. A hang shows its goroutines then; grace is for
// that, before the process is ended from outside.
func (k kind) limit() time.Duration {
	if k.race {
		return 15 * time.Minute
	}
	return 10 * time.Minute
}

const grace = time.Minute

// parallel is how many tests of one package that say so (t.Parallel) run side by side. They
// are the ones that mostly wait, so it is more than there are CPUs. Arbitrary.
const parallel = 8

func (k kind) args(p part) []string {
	args := []string{"-test.v=test2json", "-test.paniconexit0", "-test.timeout=" + k.limit().String(), fmt.Sprintf("-test.parallel=%d", parallel)}
	switch {
	case p.Only != nil:
		args = append(args, "-test.run="+strings.Join(p.Only, "|"))
	case p.tests != nil:
		args = append(args, "-test.run=^("+strings.Join(p.tests, "|")+")$")
	}
	if k.race {
		args = append(args, "-test.skip="+notUnderRace)
		if p.Rapid {
			args = append(args, fmt.Sprintf("-rapid.checks=%d", raceChecks))
		}
	}
	return args
}

// run runs the packages with clocks, or the others, and appends what became of each test
// to the file of results. They run side by side, so no test may ask for more than a deadline
// of seconds. Those that take longest begin first.
func (k kind) run(ctx context.Context, clocks bool, w io.Writer) error {
	var packs []pack
	text, err := os.ReadFile(k.packs())
	if err != nil {
		return fmt.Errorf("run build first: %w", err)
	}
	if err := json.Unmarshal(text, &packs); err != nil {
		return fmt.Errorf("%s: %w", k.packs(), err)
	}
	converter, err := exec.Command("go", "tool", "-n", "test2json").Output()
	if err != nil {
		return fmt.Errorf("go tool test2json: %w", err)
	}
	out, err := os.OpenFile(k.results(), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return err
	}
	defer out.Close()
	var todo []part
	for _, p := range packs {
		if p.Clocks != clocks && !k.rest {
			continue
		}
		parts, err := k.parts(ctx, p)
		if err != nil {
			return err
		}
		todo = append(todo, parts...)
	}
	slices.SortStableFunc(todo, func(a, b part) int { return rank(a.pack) - rank(b.pack) })
	r := runner{kind: k, converter: strings.TrimSpace(string(converter)), w: w, results: json.NewEncoder(out)}
	if !k.fresh {
		s, err := openStore(k.cache)
		if err != nil {
			return err
		}
		if r.ground, err = newGround(ctx, k.root, s.dir); err != nil {
			return err
		}
	}
	at := runtime.NumCPU() + 1 // as they also wait
	if clocks || k.rest {
		at = runtime.NumCPU() // three on two CPUs made deadlines of 300 ms and of 10 s pass
	}
	r.run(ctx, todo, at)
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("interrupted")
	case r.err != nil:
		return fmt.Errorf("write %s: %w", k.results(), r.err)
	case r.wrong > 0:
		return fmt.Errorf("tests of %d packages failed (%s)", r.wrong, k.name())
	}
	return nil
}

// runner runs packages and writes what became of them.
type runner struct {
	kind      kind
	converter string  // the command test2json
	ground    *ground // nil: every test runs, and nothing is kept

	mu      sync.Mutex // guards what follows
	w       io.Writer
	results *json.Encoder
	wrong   int   // packages with a failure
	err     error // the first of writing results
}

// part is a package, or some of its tests.
type part struct {
	pack
	tests []string // all when there are none
	name  string   // of the package, and which part
}

// rank is smaller for what begins earlier.
func rank(p pack) int {
	switch {
	case p.Parts > 1:
		return -p.Parts
	case p.Long:
		return 0
	}
	return 1
}

// parts divides the tests of a package. Neighbours go to different parts: they take
// about as long.
func (k kind) parts(ctx context.Context, p pack) ([]part, error) {
	if p.Parts < 2 || p.Only != nil {
		return []part{{pack: p, name: short(p.Path)}}, nil
	}
	cmd := exec.CommandContext(ctx, p.Bin, "-test.list=.")
	cmd.Dir = p.Dir
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("list the tests of %s: %w", p.Path, err)
	}
	all := make([]part, p.Parts)
	n := 0
	for _, name := range strings.Fields(string(out)) {
		if !strings.HasPrefix(name, "Benchmark") {
			all[n%len(all)].tests = append(all[n%len(all)].tests, name)
			n++
		}
	}
	if n < len(all) {
		return nil, fmt.Errorf("list the tests of %s: %d of them", p.Path, n)
	}
	for i := range all {
		all[i].pack, all[i].name = p, fmt.Sprintf("%s (%d of %d)", short(p.Path), i+1, len(all))
	}
	return all, nil
}

// run runs parts, so many side by side, until all ended or ctx did.
func (r *runner) run(ctx context.Context, parts []part, abreast int) {
	todo := make(chan part)
	var workers sync.WaitGroup
	for range abreast {
		workers.Go(func() {
			for p := range todo {
				r.one(ctx, p)
			}
		})
	}
	for _, p := range parts {
		if ctx.Err() == nil {
			todo <- p
		}
	}
	close(todo)
	workers.Wait()
}

func (r *runner) one(ctx context.Context, p part) {
	var all []*result
	var took, cpu time.Duration
	args := r.kind.args(p)
	if r.ground == nil {
		all, took, cpu = r.kind.test(ctx, r.converter, p, args)
	} else if was := r.ground.same(p, args, time.Now()); was != nil {
		r.unchanged(p, was)
		return
	} else if log, err := os.CreateTemp("", "gotest-"); err != nil {
		all = []*result{{Package: p.Path, Verdict: failed, output: err.Error() + "\n"}}
	} else {
		defer os.Remove(log.Name())
		defer log.Close()
		began := time.Now()
		all, took, cpu = r.kind.test(ctx, r.converter, p, append(slices.Clip(args), "-test.testlogfile="+log.Name()))
		text, err := io.ReadAll(log)
		if err == nil && ctx.Err() == nil {
			err = r.ground.keep(p, args, all, text, began)
		}
		if err != nil { // it runs again next time
			defer func() { fmt.Fprintf(r.w, "what became of %s is not kept: %v\n", p.name, err) }()
		}
	}
	pass, fail, skip, bad := count(all)
	r.mu.Lock()
	defer r.mu.Unlock()
	word := "ok  "
	if fail > 0 {
		word = "FAIL"
		r.wrong++
	}
	for _, one := range all {
		if err := r.results.Encode(one); err != nil && r.err == nil {
			r.err = err
		}
	}
	for _, b := range bad {
		fmt.Fprintf(r.w, "--- %s %s (%s)\n%s", b.Package, b.Test, b.Verdict, b.output)
	}
	fmt.Fprintf(r.w, "%s %7.1f s %6.1f s of CPU  %-44s %d passed, %d failed, %d skipped\n",
		word, took.Seconds(), cpu.Seconds(), p.name, pass, fail, skip)
}

// unchanged takes over what became of a part that need not run.
func (r *runner) unchanged(p part, was *kept) {
	pass, fail, skip, _ := count(was.Results)
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, one := range was.Results {
		one.Kept = true
		if err := r.results.Encode(one); err != nil && r.err == nil {
			r.err = err
		}
	}
	fmt.Fprintf(r.w, "ok   unchanged since %s       %-44s %d passed, %d failed, %d skipped\n", was.At.Format("15:04"), p.name, pass, fail, skip)
}

func short(pkg string) string { return strings.TrimPrefix(strings.TrimPrefix(pkg, module), "/") }

// test runs one binary.
func (k kind) test(ctx context.Context, converter string, p part, args []string) (all []*result, took, cpu time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, k.limit()+grace)
	defer cancel()
	cmd := exec.CommandContext(ctx, converter, append([]string{"-t", "-p", p.Path, p.Bin}, args...)...)
	cmd.Dir = p.Dir
	cmd.Env = append(os.Environ(), "PWD="+p.Dir)
	if k.race {
		// Without the option, each of some hundred child processes sleeps a second before it exits.
		cmd.Env = append(cmd.Env, "GORACE="+os.Getenv("GORACE")+" atexit_sleep_ms=0")
	}
	// A process group of its own: what a test started goes with it.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 5 * time.Second
	var events, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &events, &errs
	began := time.Now()
	err := cmd.Run()
	took = time.Since(began)
	if cmd.ProcessState != nil {
		cpu = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	}
	all, bad := read(p.Path, &events)
	if bad == nil && err != nil {
		bad = err
	}
	whole := &result{Package: p.Path, Verdict: unended}
	for _, r := range all {
		if r.Test == "" {
			whole = r
		}
	}
	if whole.Verdict == unended { // no event told how the package ended
		all = append(all, whole)
	}
	if bad != nil {
		whole.Verdict = failed
		whole.output += fmt.Sprintf("%v\n%s", bad, errs.Bytes())
	}
	return all, took, cpu
}
