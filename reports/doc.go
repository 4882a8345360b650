// Package reports turns measured nanoseconds into figures a reader can trust: a latency recorder for the hot loop, the
// result document, statistics over repeats, thresholds and comparison.
//
// Data flow: one Recorder per worker, merged after the loop, gives a Latency; a Result carries it with everything that
// must be given with a figure; a Document carries the results with the command and the environment. A document is the
// only thing that is rendered, so a run can be printed again later from its JSON file alone.
//
// A Result has dimensions and figures, by names that docs/reference/results.md lists. A workload fills
// them in from its detail ([Workload]); this package and everything that draws know no workload.
//
//	reports           document, recorder, statistics, thresholds, comparison
//	reports/view      tables, charts and words as data
//	reports/charts    charts of figures
//	reports/page      what a page says: verdict, sections, tables, conformance
//	reports/render/*  one format each
//
// Ownership: a Recorder belongs to the goroutine that records into it. Every other value is plain data, owned by
// whoever holds it; renderers and writers only read it.
//
// Limitations:
//   - Percentiles come from an HDR histogram with three significant digits:
//     they are right within 0.1 %. Count, min, max, mean and stddev are exact.
//   - The histogram reaches from 0 to 60 s. A longer sample is counted at 60 s
//     in percentiles (Latency.Clamped says how many) and exactly elsewhere.
//   - Mean and stddev of a corrected histogram rest on the recorded samples
//     exactly and on the inserted ones within 0.1 %.
//   - Intervals over repeats take them for independent draws of one normal
//     distribution. A machine that drifts breaks both; the repeats are given as well.
package reports
