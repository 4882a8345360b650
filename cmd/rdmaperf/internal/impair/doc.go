// Package impair makes two network namespaces with a bad path between them: packets
// that the kernel's IP sends go through a proxy of this process, which loses, doubles,
// reorders and delays them by a seed. The kernel needs TUN devices and no netem.
//
// It needs root, and carries IPv4 of MTU 1500 at the rate of two system calls a packet. Delays are Go timers: a
// millisecond and more.
package impair
