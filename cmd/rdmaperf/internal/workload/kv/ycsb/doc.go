// Package ycsb generates the core workloads of the Yahoo! Cloud Serving Benchmark, and what is in their records.
//
// Sources: Cooper et al., SoCC 2010, §4 and table 2, for the mixes a to e; the public tool's core workload files for f
// and the defaults.
//
// A [Generator] belongs to one goroutine; [Keys] is shared. Nothing allocates once it is made. A field is its version,
// and bytes that follow from seed, key, field and version, so that a reader can tell a wrong, a torn and a flipped one.
//
// The tool's zipfian numbers are exact for two items (Gray et al., SIGMOD 1994); these are for all. Scans begin at
// loaded records only, as the tool's range would need the number of operations, which a run by time does not have.
package ycsb
