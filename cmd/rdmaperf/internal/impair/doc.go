// Package impair makes two network namespaces with a path between them through a proxy of this process, which loses,
// doubles, reorders and delays packets by a seed. It needs root and TUN devices, and carries IPv4 of MTU 1500. Delays
// are Go timers: a millisecond and more.
package impair
