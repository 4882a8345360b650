// Package bpev waits for many connections by busy polling first and by events
// after that: the connection method of RR-Compound (TPDS'24), made independent of
// gRPC and of RDMA.
//
// A caller that waits polls its own connection for a bounded time (bp). Traffic
// that answers within it never pays for a wake-up. After that the caller sleeps
// until it can go on (ev):
//
//	mode   the caller                 a sleeper is woken by
//	bp     polls until it is served   -
//	event  sleeps at once             the events of its own completion queue
//	bpev   polls, then sleeps         background pollers that scan all sleepers
//
// Where other processes want the CPUs (procs.Contention), a thread that spins waits whole time
// slices for them. bpev then does what event does, until spinning pays again: nobody polls, the
// pollers park, and each caller waits for the events of its own queue in the runtime's network
// poller, so that the thread that the kernel wakes runs it at once.
//
// Where more connections are active than its pollers can look at for less (Config.MostPolled) it does so, too: the
// runtime learns of all events by one system call.
//
// Background pollers scan nothing without sleepers. They spin while their
// scans find work and for a moment after that. Then they park: sleepers wait for
// their own events, until those come close together again, and callers whose last
// waits were long sleep at once. For connections without events a poller pauses
// between scans instead. Where pollers and one caller fill all processors of the process (on two processors,
// with one poller) they also spin while callers do: no processor idles then, and
// the runtime wakes no thread for every goroutine that becomes runnable.
//
// When Remove of a [Handle] has returned, no goroutine of its [Set] is inside the
// connection's Poll any more. One goroutine a direction may wait on a Handle at a time; Kick
// and Notify may be called from anywhere.
//
// At most half the processors of the process spin for callers at once: in bpev
// the others sleep at once and are found by the pollers, in bp they take turns.
// Spinning threads yield their processor to other processes at every read of
// the clock. On two processors that calls keep busy anyway, bp may
// be faster than bpev, whose poller takes part of one. The runtime polls its own
// network poller only when it runs out of goroutines, so a process whose processors
// all spin serves its ordinary sockets late. The runtime's timers may be a
// millisecond late, and so may the end of a pause.
package bpev
