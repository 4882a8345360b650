// Package perftest writes results in the tables of perftest, for scripts that parse
// those.
//
// Limitations: perftest has tables of latency and of bandwidth only; a remark counts
// the results that have neither. Their peak bandwidth is over parts of the window, a
// millisecond or longer, where perftest's is over any two messages and thus higher.
package perftest
