// Package placement chooses the CPUs that worker threads are pinned to, and says why.
//
// # Ownership
//
// A [Machine] and a [Choice] are plain data of whoever made them. [Keep] changes the
// affinity of the whole process, which its children inherit.
//
// # Limitations
//
// Memory is not bound: it comes from the node of the thread that touches it first, which is
// that of the CPUs that the process is kept on (set_mempolicy(2), MPOL_DEFAULT). Caches
// that some cores of a node share are not looked at.
package placement
