// Package wakeup measures how long the machine takes to wake a thread, and keeps its
// CPUs from falling asleep on request.
//
// A stack that sleeps for completions pays this time for every message that finds it asleep, and a stack that polls
// does not. On an idle CPU it is mostly the way out of the idle state, in a virtual machine a halt that the hypervisor
// takes part in. So a ratio of a sleeping to a polling stack says as much about the machine as about the two, unless
// this figure is next to it.
//
// One waker and one waiter are on different CPUs where there are two; wake-ups across NUMA nodes are not told apart.
package wakeup
