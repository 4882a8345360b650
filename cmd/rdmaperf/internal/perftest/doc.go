// Package perftest reads the command lines of perftest's tools for reliable connections, and prints results as they do
// (perftest 6.29, src/perftest_parameters.c and .h).
// Every option of perftest is the same, differs in a way that is said, or is refused with the reason. Both sides must
// be rdmaperf. Figures differ where nothing is trimmed from the longest samples, and latency is from the post until the
// arrival.
package perftest
