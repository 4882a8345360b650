package engine

import (
	"runtime"
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
