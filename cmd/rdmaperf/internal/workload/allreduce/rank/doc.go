// Package rank is one process of an all-reduce: it does what its parent says over
// a link, and answers.
//
// Serve owns the device that it opens, and everything below it. It ends when the
// link does, so that no rank outlives its parent.
//
// One thread does everything: computation and communication overlap only in what the
// device does by itself.
package rank
