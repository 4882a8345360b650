package drive

import "github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"

// Where the kernel is the device, its threads work on the CPUs that poll, or on the siblings of their cores. With
// PollingAdaptive both ends of a stream therefore sleep for a small part of the time for which the device has work:
// the client where its queue is full and nothing completes, the target of messages where none came. perftest
// polls all the time, so only PollingBusy compares with it. Over an adapter, whose queues are empty sooner than
// leastSleep, no side sleeps.
//
// A sleep takes a 64th of what the queue holds, so that one which lasts four times as long, as sleeps on busy CPUs
// do, still ends well before the queue does. MostSleep is a sixth of a fair scheduler's slice; below leastSleep the
// 50 us of slack that the kernel gives timers are most of it.
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

// Sleep sleeps for so many ns. A variable, so that tests can have a clock of their own.
var Sleep = engine.SleepFor
