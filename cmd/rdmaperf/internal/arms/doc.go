// Package arms are the ways to have memory registered that workloads hold against each
// other: by the device each time, through a cache, and when it is mapped.
//
// An [Arm] owns the mappings that Take gave and Give has not taken back, and what it
// keeps registered. Close fails while a [Hold] or a mapping is out.
//
// On-demand paging is for devices that declare it, and refused for others.
package arms
