// Package think is the workload of calls whose server thinks: it computes for a stated time
// before it answers, and what the waiting client's processor does meanwhile is measured
// (LITE, SOSP'17: adaptive waiting).
//
// One call at a time. Thinking is a loop that looks at the clock, so that the server's
// processor is busy for as long, and not a sleep, which is longer than asked for by the time
// of a wake-up. A side's CPU is that of its process: threads that poll in the background
// count, daemons of a stack do not.
package think
