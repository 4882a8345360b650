package drive

import "github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"

// Where the kernel is the device, its threads work on the CPUs that poll, or on the
// siblings of their cores. With PollingAdaptive both ends of a stream therefore sleep for a
// small part of the time for which the device has work: the client where its queue is full
// and nothing comes from it, the target of messages where none came. 64 KiB over siw, both
// ends and their kernel on two emulated CPUs: reads had 0.98 of perftest's rate (0.95 to 1.03), and 1.53
// (1.30 to 1.59) with sleeps of 0.5 ms of the client; sends over RXE 1.00 and 1.02, whose
// intervals overlap (6 pairs each). perftest polls all the time, so such a ratio says what
// the sleep is worth and not whose loop is faster: PollingBusy is what compares with it.
// Over an adapter, whose queues are empty sooner than leastSleep, nobody sleeps.
//
// A sleep takes a 64th of what the queue holds, so that one that lasts four times as long,
// as sleeps on busy CPUs do, still ends well before the queue does. MostSleep is a sixth of
// the slice for which a fair scheduler may run somebody else; below leastSleep the 50 us of
// slack that the kernel gives timers are most of it. Arbitrary.
const (
	sleepPart        = 64
	MostSleep  int64 = 500_000 // ns
	leastSleep int64 = 100_000
)

// SleepTime is for how many ns a worker may sleep whose device has left operations to do
// besides those of the next completion, after done of them in took ns.
func SleepTime(left int, done, took int64) int64 {
	if left <= 0 || done <= 0 {
		return 0
	}
	return min(took/done*int64(left)/sleepPart, MostSleep)
}

// Nap sleeps for so many ns. A variable, so that tests can have a clock of their own.
var Nap = engine.SleepFor
