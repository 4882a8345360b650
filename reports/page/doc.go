// Package page is what a page about result documents says, as data: the verdict,
// the sections of charts, the tables, conformance, and how each run came about.
// Renderers draw it.
//
// Limitations: the verdict goes by medians without a test of significance;
// reports.Compare has one.
package page
