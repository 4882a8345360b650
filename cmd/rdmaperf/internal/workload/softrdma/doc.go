// Package softrdma is the workload of SoftRDMA's evaluation (APNet'17, doi
// 10.1145/3106989.3106995): latency and throughput at its five sizes, the throughput at
// depth 1 and at depth 16 apart, as the paper's is a size by its latency. What the paper
// measured is beside, as text with its source. The schemes are stacks: verbs, iwarp on
// lwIP's raw or Sequential API, or on kernel sockets. Of the paper's two schemes in the
// middle only plots are published, so there are no numbers of them.
package softrdma
