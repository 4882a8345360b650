// Package offload models the detour of a light-weight kernel next to Linux (Gerofi et
// al., EuroMPI'16): its processes reach the network without a system call, but cannot
// register memory themselves and have Linux do it.
//
// A Registrar owns the thread that makes the calls, which ends with Close. The registrar below and
// the registrations are the user's. A detour here is a hop between two threads of one kernel, or a
// stated time in which the caller is busy. What it costs between two kernels is not public.
package offload
