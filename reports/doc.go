// Package reports turns measured nanoseconds into figures a reader can trust:
// a latency recorder for the hot loop, the result document, and its renderers.
//
// Data flow: one Recorder per worker, merged after the loop, gives a Latency;
// a Result carries it with everything that must stand beside a figure; a
// Document carries the results with the command and the environment. A document
// is the only thing renderers read, so a run can be printed again later from
// its JSON file alone.
//
// Ownership: a Recorder belongs to the goroutine that records into it. Every
// other value is plain data, owned by whoever holds it; the renderers and
// writers only read it.
//
// The package knows nothing of RDMA and imports nothing else of this module.
//
// Limitations:
//   - Percentiles come from an HDR histogram with three significant digits:
//     they are right within 0.1 %. Count, min, max, mean and stddev are exact.
//   - The histogram reaches from 0 to 60 s. A longer sample is counted at 60 s
//     in percentiles (Latency.Clamped says how many) and exactly elsewhere.
//   - Mean and stddev of a corrected histogram rest on the recorded samples
//     exactly and on the inserted ones within 0.1 %.
//   - Environment reads Linux's /proc and /sys; elsewhere most of it is empty.
//   - The text and benchmark formats show latency, throughput and head-of-line
//     results. What they do not know is listed with its operations and errors
//     only.
//   - perftest's tables have no place for head-of-line results: a remark counts
//     them. Their peak bandwidth is over parts of the window, a millisecond or
//     longer, where perftest's is over any two messages and thus higher.
//   - Mean and deviation inside a .hgrm file rest on the histogram, within 0.1 %.
//   - Prometheus sees results with the same labels, such as repeats, as one
//     series. Native buckets grow by 9 %, classic ones by a factor of two.
//   - Raw samples stand in a file of their own, which the document names by the
//     path that the run was given.
//   - Intervals over repeats take them for independent draws of one normal
//     distribution. A machine that drifts breaks both; the repeats stand beside.
//   - Compare goes by medians of repeats. With three on each side its test cannot
//     call anything significant; four can do.
//   - The HTML page draws at most six sizes of one load as distributions, and its
//     verdict goes by medians without a test of significance: Compare has one.
package reports
