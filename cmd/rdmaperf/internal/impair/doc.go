// Package impair makes two network namespaces with a bad path between them: packets
// that the kernel's IP sends go through a proxy of this process, which loses, doubles,
// reorders and delays them by a seed. The kernel needs TUN devices and no netem.
//
// # Ownership
//
// A Path owns its namespaces, devices and goroutines until Close. Processes started in
// a namespace keep it alive, so they end first.
//
// # Limitations
//
// IPv4, MTU 1500, and the rate of two system calls a packet. It needs root. Delays are
// Go timers: a millisecond and more.
package impair
