// Package perftest reads the command lines of perftest's tools for reliable
// connections (ib_send_lat, ib_write_bw and so on), says what they mean to rdmaperf, and
// prints results the way those tools do, so that scripts made for them go on working.
//
// The options and the layout are those of perftest 6.29 of July 2026 (src/perftest_parameters.c and .h, option tables,
// RESULT_FMT and REPORT_FMT). Every option of perftest has a row in the table of options: it is the same, differs in a
// way that is said, or is refused with the reason.
//
// # Limitations
//
// rdmaperf's client and server speak rdmaperf's own control protocol: perftest's tools cannot be the other side.
// Figures differ where perftest's do not mean what they say: nothing is trimmed from the longest samples, and latency
// is from the post until the arrival, not until the next post.
package perftest
