// Package offload stands for the detour of a light-weight kernel beside Linux (Gerofi et
// al., EuroMPI'16): its processes reach the network without a system call, but cannot
// register memory themselves and have Linux do it.
//
// # Ownership
//
// A Registrar owns the thread that makes the calls, which ends with Close. What it stands
// over is its user's, and so are the registrations.
//
// # Limitations
//
// A detour here is a hop between two threads of one kernel, or a stated time in which
// the caller is busy. What it costs between two kernels is not public.
package offload
