// Package charts makes the charts that results of any workload may stand in, as
// data: distributions, latency and throughput by size, by rate, by connections and
// over time. Kinds make their own of its parts.
//
// Limitations: at most six sizes of one load are drawn as distributions.
package charts
