// Package ycsb generates the core workloads of the Yahoo! Cloud Serving Benchmark: which records are read, updated,
// inserted and scanned, in which order, and what is in them. It reaches no store.
//
// Sources: Cooper et al., "Benchmarking Cloud Serving Systems with YCSB", SoCC 2010, §4 and table 2, for the mixes a to
// e; the core workload files workloada to workloadf of the public tool for f and for the defaults: records of 10 fields
// of 100 bytes, all fields read, one written, scans of 1 to 100 records, keys hashed.
//
// A [Generator] belongs to one goroutine. [Keys] is shared by the generators of a run. Nothing allocates after it is
// made.
//
// A field is its version and then bytes that follow from the seed, the key, the field and the version, so that whoever
// reads it can tell a wrong record, a torn one and a flipped bit apart from what was written, without knowing who wrote
// last.
//
// The public tool's zipfian numbers are an approximation that is exact for the two most frequent items (Gray et al.,
// SIGMOD 1994); those here are exact for all. The mixes d and e insert. Scans begin at records that were loaded, and
// find the inserted ones on their way; the public tool also begins at inserted ones, out of a range that it takes from
// the number of operations, which a run by time does not have.
package ycsb
