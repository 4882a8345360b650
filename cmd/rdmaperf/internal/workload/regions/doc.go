// Package regions is the workload of many regions: how writes to random places of them
// fare as their number and their size grow, with a registration for each or through
// named regions of LITE, and what it costs to make one by its size.
//
// Both ends live in this process. One thread posts, and polls both ends: a thread of the far
// one's would be woken by what arrives, and a write would cost that. The regions of a point are
// made before its window, at the far end; that is timed by the host's clock, whatever
// the device's.
package regions
