// Package reports turns measured nanoseconds into figures: a latency recorder for the hot loop, the result document,
// statistics over repeats, thresholds and comparison. Package page and those below render draw documents.
//
// One Recorder per worker, merged after the loop, gives a Latency; a Result carries it with dimensions and figures,
// which a workload fills in from its detail ([Workload]); a Document carries the results. docs/reference/results.md
// lists the names. A Recorder belongs to the goroutine that records into it; all else is plain data, only read here.
//
// Percentiles come from an HDR histogram from 0 to 60 s and are right within 0.1 %. Longer samples count at 60 s there,
// and exactly elsewhere. Mean and stddev of a corrected histogram are right within 0.1 % in what was inserted.
// Intervals over repeats take them for independent draws, which a machine that drifts breaks.
package reports
