// Package engine is the measuring engine: it turns a [Plan] into results on any
// [transports.Transport].
//
// A client connects to a server over a control channel (JSON lines over TCP),
// sends the whole plan once, and then steps through its points. For every point
// both sides open fresh sessions, and run phases: warm-up, measurement and, for
// streams, a second pass with a fresh pattern. The head-of-line workload first
// measures the probes alone and the bulk alone. In a phase the server's workers
// are targets (they echo, watch memory, return credits, or only let the
// transport make progress) and the client's workers are the ones that measure.
//
// # Data flow
//
//	Plan ─► Shape (one point, agreed by both sides) ─► group ─► worker loops ─► Session
//	Result ◄── histogram, counts, verdicts ◄── phase report ◄─┘
//
// What a point does is said by the row of its workload, a [Workload], and the rows are
// those of the plan and the server: the package has no list of its own. A workload that
// drives no sessions and makes no calls has a run of its own, see [Own].
//
// # Ownership
//
// A worker is one goroutine locked to its thread; it owns its sessions, its
// recorder and its buffers from the start of a phase until it is joined. The
// control channel's reader is the only other goroutine of a run, and sleeps
// while a phase runs. Loops are chosen before they start, allocate nothing, and
// end by an atomic flag, a count, or a deadline held against clock reads that
// they do anyway.
//
// # What a figure means
//
// One latency sample is one ping-pong between two clock reads: posting, the way
// out, the peer's turn-around and the way back, until the client's own thread
// has seen the answer. For send and write it is halved. Nothing else is timed:
// comparing the echo with what was sent, reposting receives and reaping send
// completions happen between samples. Where the transport takes the steps of a
// ping-pong in one call (parameter loop: provider), the clock is read in that call, and up
// to 16 messages of at most 4 KiB go in one: one after the other, each
// with its own sample, prepared together and compared together.
// What the loop itself puts into a sample is measured without a transport below and
// stands beside the figures (loop_overhead_ns): that of the loop in use.
//
// A stream's window starts before the first post and ends when a round trip
// behind the last operation proves that everything arrived, because completions
// may be local (RFC 5040 §5.5). All operations posted in the window count, and
// nothing else. A duration D stops the posting after D; the tail is inside the
// window. Where the server's device places writes unaided, its thread sleeps until
// that round trip: a poller would only take from whoever measures. For the same reason
// both ends of a stream sleep now and then where adaptive polling is asked for (SleepTime).
//
// In both directions at once, both sides run such a stream. The server's begins when
// it hears from the client's; each window is timed by its own side.
//
// In an incast each client is such a stream on a thread of its own, all to one
// thread of the server; a client's rate is over its own window.
//
// A connection's set-up is timed from before its first resource to the end of its
// first round trip, and its end until everything is given back. The server accepts
// with one thread.
//
// In the parameter server workload an iteration is the time from one end of the
// backward pass to the next. Computation is that of an accelerator beside the thread:
// it has a time line of its own, which only a tensor that is not back yet holds up,
// and takes no CPU.
//
// In the starvation workload the high class is due at intended starts, and what each
// class has completed when the window ends counts; where completions are local, what
// fits the buffers below counts, too.
//
// With a rate the latency loop is open: operations are due at intended starts, none
// is skipped, and a sample is the wait behind its start and then the above. The
// head-of-line workload times its probes from their intended starts, too, and over
// the full round trip; bulk is a stream as above.
//
// In the key-value workload a sample is one operation of YCSB: a call, and of a
// read-modify-write two. The server loads its store before any window and times it in
// every call; checking what was read is between samples. Tensors go by one call each; of
// long ones a part in turn is compared, by the server within the call.
//
// Device counters and the process's own usage are read before a window begins and
// after it ended.
//
// # Limitations
//
// A point of the key-value workload has a store of its own, with one writer at a time,
// whose wait is in the store's time. Latencies by operation are those of the calls alone,
// also in an open loop.
//
// The clients of an incast, and connections set up at once, are of threads of one
// process, and a long connect run over TCP needs many ephemeral ports.
// --interval in both directions shows the client's only.
//
// The parameter server has one worker, its update takes no time, and a pull is a read:
// it finds what the push before it wrote. Computation is a time, split over the
// tensors by their multiply-adds, and no load on the memory.
//
// Raw samples are bounded: what does not fit is counted, and only the histogram has
// it. They are handed over between windows, so that a slow disk lengthens a run. Every
// worker, or goroutine that calls, has an equal part of the room. It is resident memory
// of the client before its connections are.
//
// An open-loop latency point has one operation under way on each thread: behind a
// slow one the next wait. Head-of-line probes go up to 128 deep. One window a side and a connection. Sizes start at 1 byte;
// atomics are 8 bytes. The last byte of a written message is its arrival mark,
// so a corruption that turns that byte into its previous value is seen as a
// message that never arrived. Several QPs of one worker are served in turn, so
// their latencies include one another's turn-around only when threads are fewer
// than CPUs.
package engine
