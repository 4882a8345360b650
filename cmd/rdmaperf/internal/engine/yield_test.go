package engine

import (
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// waits is a wait of total ns that is compared every step ns, and says when yields came.
func waits(o *Yielder, total, step int64) (at []int64) {
	yielded := 0
	o.yield = func() { yielded++ }
	for t := int64(0); t < total; t += step {
		before := yielded
		if o.yieldIfDue(t, 0); yielded > before {
			at = append(at, t)
		}
	}
	return at
}

func TestOffersThatNobodyTakesComeEverLessOften(t *testing.T) {
	o := &Yielder{taken: func() uint64 { return 0 }}
	at := waits(o, 10_000_000, 1000)
	if len(at) < 3 {
		t.Fatalf("%d yields in 10 ms", len(at))
	}
	if at[0] != yieldAfter {
		t.Errorf("the first yield is at %d ns, want %d", at[0], yieldAfter)
	}
	longest := int64(yieldAfter) << mostYieldShift
	for i, gap := 1, int64(2*yieldAfter); i < len(at); i++ {
		if got := at[i] - at[i-1]; got != gap {
			t.Errorf("yield %d is %d ns after the one before, want %d", i, got, gap)
		}
		gap = min(2*gap, longest)
	}
	if got, want := o.Polls(), uint32(SpinCheck<<mostPollShift); got != want {
		t.Errorf("a step polls %d times where nobody wants the CPU, want %d", got, want)
	}
}

func TestAnOfferThatIsTakenIsRepeatedSoon(t *testing.T) {
	switches := uint64(0)
	o := &Yielder{shift: mostYieldShift, taken: func() uint64 { switches++; return switches }}
	at := waits(o, 2_000_000, 1000)
	if len(at) < 2 {
		t.Fatalf("%d yields in 2 ms", len(at))
	}
	for i := 1; i < len(at); i++ {
		if got := at[i] - at[i-1]; got != yieldAfter {
			t.Errorf("yield %d is %d ns after the one before, want %d", i, got, yieldAfter)
		}
	}
	if got := o.Polls(); got != SpinCheck {
		t.Errorf("a step polls %d times where others want the CPU, want %d", got, SpinCheck)
	}
}

// A target that may be late: it lost its CPU to somebody at 30 µs, and not again.
func TestATargetNapsForAWhileAfterItLostItsCPU(t *testing.T) {
	var clock int64
	var sleeps []int64
	o := &Yielder{Sleeps: true, known: 7}
	o.sleep = func() { sleeps = append(sleeps, clock) }
	o.yield = func() {
		if 60_000 <= clock && clock < 60_000+wantedFor {
			t.Fatalf("yields at %d ns, where others want the CPU", clock)
		}
	}
	o.taken = func() uint64 {
		if clock < 30_000 {
			return 7
		}
		return 8
	}
	for clock = 0; clock < 200_000_000; clock += 5000 {
		o.yieldIfDue(clock, 0)
	}
	if len(sleeps) == 0 || sleeps[0] != 60_000 { // the yields are at 20 and, as nobody took that, 60 µs
		t.Fatalf("sleeps begin at %v, want 60000 ns", sleeps[:min(1, len(sleeps))])
	}
	for i := range sleeps[1:] {
		if gap := sleeps[i+1] - sleeps[i]; gap != yieldAfter {
			t.Errorf("sleep %d is %d ns after the one before, want %d", i+1, gap, yieldAfter)
		}
	}
	if last := sleeps[len(sleeps)-1]; last >= 60_000+wantedFor || last < 60_000+wantedFor-yieldAfter {
		t.Errorf("the last sleep is at %d ns, want just before %d", last, 60_000+wantedFor)
	}
}

func TestOnlyATargetThatMayBeLateSleeps(t *testing.T) {
	switches := uint64(0)
	o := &Yielder{taken: func() uint64 { switches++; return switches }, sleep: func() { t.Error("sleeps") }}
	waits(o, 1_000_000, 1000)
}

func TestAWaitThatEndsSoonYieldsNever(t *testing.T) {
	o := &Yielder{taken: func() uint64 { return 0 }}
	o.yield = func() { t.Error("yields") }
	for since := int64(0); since < 1_000_000; since += 10_000 {
		o.yieldIfDue(since+yieldAfter-1, since)
	}
}

// Two threads on one CPU: each sees that the other took what it offered.
func TestAThreadOnTheSameCPUIsSeenToTakeTheOffer(t *testing.T) {
	var allowed unix.CPUSet
	if err := unix.SchedGetaffinity(0, &allowed); err != nil {
		t.Fatal(err)
	}
	cpu := 0
	for !allowed.IsSet(cpu) {
		cpu++
	}
	var one unix.CPUSet
	one.Set(cpu)
	ready, done := make(chan error), make(chan struct{})
	defer close(done)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with its affinity
		ready <- unix.SchedSetaffinity(0, &one)
		for {
			select {
			case <-done:
				return
			default:
				unix.RawSyscall(unix.SYS_SCHED_YIELD, 0, 0, 0)
			}
		}
	}()
	if err := <-ready; err != nil {
		t.Fatal(err)
	}
	seen := make(chan bool)
	go func() {
		runtime.LockOSThread()
		if err := unix.SchedSetaffinity(0, &one); err != nil {
			t.Error(err)
		}
		o := Yielder{shift: 1}
		for end := time.Now().Add(10 * time.Second); o.shift != 0 && time.Now().Before(end); {
			o.last, o.shift = 0, 1
			o.yieldIfDue(yieldAfter<<o.shift, 0)
		}
		seen <- o.shift == 0
	}()
	if !<-seen {
		t.Error("no yield in 10 s let the other thread run")
	}
}

// A worker whose polls take long checks the clock after fewer of them. Time that somebody else had says nothing.
func TestAWorkerLooksMoreOftenWherePollsTakeLong(t *testing.T) {
	var w Worker
	at := int64(1)
	polls := func(n int, poll int64) {
		for range n {
			at += (SpinCheck >> w.checkShift) * poll
			w.adaptChecks(at, false)
		}
	}
	w.adaptChecks(at, true)
	if polls(10, 60); w.checkShift != 0 {
		t.Errorf("polls of 60 ns: a check after %d of them, want %d", SpinCheck>>w.checkShift, SpinCheck)
	}
	if polls(10, 2000); (SpinCheck>>w.checkShift)*2000 > 3*yieldAfter {
		t.Errorf("polls of 2 us: a check after %d of them", SpinCheck>>w.checkShift)
	}
	if polls(10, 1_000_000); w.checkShift != mostChecks {
		t.Errorf("polls of 1 ms: a check after %d of them, want %d", SpinCheck>>w.checkShift, SpinCheck>>mostChecks)
	}
	if polls(10, 60); w.checkShift != 0 {
		t.Errorf("polls of 60 ns again: a check after %d of them, want %d", SpinCheck>>w.checkShift, SpinCheck)
	}
	w.Yielder.last = w.checked
	if w.adaptChecks(at+10_000_000, false); w.checkShift != 0 {
		t.Errorf("behind a yield of 10 ms: a check after %d polls, want %d", SpinCheck>>w.checkShift, SpinCheck)
	}
}

// A wait ends after the limit of time that the thread was given, and at four limits in any case.
func TestPatienceCountsTheTimeThatAThreadIsGiven(t *testing.T) {
	const limit = 5 * time.Second
	for _, c := range []struct {
		waits, used float64 // parts of the time: the thread waits for a CPU, and the process has all of them
		from, most  time.Duration
	}{{0, 0.5, limit, limit + time.Second}, {0.5, 0.2, 2*limit - 2*time.Second, 2*limit + time.Second},
		{0.7, 0, 3*limit - 2*time.Second, 3*limit + 2*time.Second}, {1, 0, 4 * limit, 4*limit + time.Second},
		{0.75, 1, limit, limit + time.Second}, // its own threads wait for each other
	} {
		var now, since int64 = 0, 100
		p := Patience{delay: func() int64 { return int64(c.waits * float64(now)) },
			used: func() int64 { return int64(c.used * float64(now)) }}
		for now = since + int64(limit) + 1; !p.Over(since, now, int64(limit)); now += int64(50 * time.Millisecond) {
			if now > int64(time.Minute) {
				t.Fatalf("%v: it does not end", c.waits)
			}
		}
		if took := time.Duration(now - since); took < c.from || took > c.most {
			t.Errorf("%v of the time without a CPU: over after %v, want %v to %v", c.waits, took, c.from, c.most)
		}
		if next := now + 1; p.Over(next, next+int64(limit)+1, int64(limit)) {
			t.Errorf("%v: the next wait is over at once", c.waits)
		}
	}
}

func TestThreadsDelayIsCounted(t *testing.T) {
	if d, u := threadDelay(), processShare(); d < 0 || d > int64(time.Hour) || u <= 0 || u > int64(time.Hour) {
		t.Errorf("%d ns, %d ns", d, u)
	}
}

// A worker whose limit has passed waits on while its thread waits for a CPU.
func TestAWorkerWaitsForWhatItsThreadIsGiven(t *testing.T) {
	w := &Worker{Stop: new(atomic.Uint32), stall: int64(time.Second), Spins: 2 * SpinCheck,
		patience: Patience{delay: Now, used: func() int64 { return 0 }}}
	w.waitStart = Now() - 2*w.stall
	if err := w.check(nil); err != nil {
		t.Errorf("the wait ended: %v", err)
	}
}

// A client waits as long as its timeout, or as long as what is under way takes at 10 MB/s.
func TestWhatIsUnderWayTakesTime(t *testing.T) {
	for bytes, want := range map[int64]time.Duration{16e6: 2 * time.Second, 100e6: 10 * time.Second} {
		w := &Worker{Sh: &Shape{Timeout: 2 * time.Second}}
		if w.UnderWay(bytes); w.stall != int64(want) {
			t.Errorf("%d bytes: %v, want %v", bytes, time.Duration(w.stall), want)
		}
	}
}
