// Package suite holds what a cluster of package lite must do, as cases for
// 'rdmaperf conform --transport lite+X': names, permissions, handles that die, bounds,
// the codes of errors, calls of every length, rings that are full, locks, and deaths.
//
// Every case has three nodes in one process over fresh devices, which [Run] opens and
// closes. LITE has no specification: the clauses are those of the paper (Tsai and Zhang,
// SOSP'17), of its published code (lite.h, lite_core.c), and of package lite where it says
// more. Times are held against wide limits only.
package suite
