// Package perftest writes results in the tables of perftest, for scripts that parse those.
package perftest

import (
	"bytes"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/reports/view"
)

// perftest's own headings, version 6.2x.
const (
	perftestLatency = " #bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]    t_avg[usec]    " +
		"t_stdev[usec]   99% percentile[usec]   99.9% percentile[usec] "
	perftestBandwidth = " #bytes     #iterations    BW peak[%[1]s]    BW average[%[1]s]   MsgRate[Mpps]"
)

const perftestRule = "---------------------------------------------------------------------------------------"

// Write prints the document as perftest prints its tables: its headings to the letter, one row per size. Lines that
// begin with # and a space are remarks, which perftest's parsers pass over.
//
// Nothing is trimmed, so t_max is the longest sample. BW peak is the best of equal parts of the window, and 0.00 when
// it was too short for two; perftest's is the best of all spans between two messages.
func Write(w io.Writer, d *reports.Document, gbits bool) error {
	var out bytes.Buffer
	e := &d.Environment
	fmt.Fprintf(&out, "# rdmaperf %s, %s %s, %d x %s\n", view.Printable(e.Version), view.Printable(e.OS),
		view.Printable(e.Kernel), e.CPUs, view.Printable(e.CPU))
	out.WriteString("# every sample counts: no maxima are dropped and no margin is cut from the window\n")
	var without int
	for _, g := range reports.GroupResults(d.Results, nil) {
		without += perftestGroup(&out, g, gbits)
	}
	if without > 0 {
		fmt.Fprintf(&out, "# %s without a table of perftest's: use --format text or json\n",
			view.Plural(int64(without), "result"))
	}
	if e := d.Error; e != nil {
		fmt.Fprintf(&out, "# run ended early: %s: %s\n", view.Printable(e.Operation), view.Printable(e.Message))
	}
	return reports.WriteAll(w, "perftest report", out.Bytes())
}

// perftestGroup prints one group and returns how many of its results have no row.
func perftestGroup(out *bytes.Buffer, g *reports.Grouped, gbits bool) (without int) {
	unit := "MiB/sec"
	if gbits {
		unit = "Gb/sec"
	}
	var latency, rate, rates, peaks, ways []string
	for _, r := range g.Results {
		if r.Rate > 0 {
			rates = append(rates, reports.Offered(r))
		}
		if l := r.Latency; l != nil {
			latency = append(latency, perftestRow(r.SizeBytes, l.Count, view.Usec(l.Min), view.Usec(l.Max),
				view.Usec(l.P50), view.Usec(l.Mean), view.Usec(l.StdDev), view.Usec(l.P99), view.Usec(l.P999)))
		}
		// As in the text: the rate of a ping-pong says nothing new.
		if t := r.Throughput; r.Streamed() && t.BytesPerSecond > 0 {
			peaks = append(peaks, peakLength(r))
			if client, server, ok := directions(r); ok {
				ways = append(ways, view.Bandwidth(client, gbits)+" and "+view.Bandwidth(server, gbits))
			}
			rate = append(rate, perftestRow(r.SizeBytes, r.Operations, view.Bandwidth(t.PeakBytesPerSecond, gbits),
				view.Bandwidth(t.BytesPerSecond, gbits), view.Number(t.OperationsPerSecond/1e6, 6)))
		} else if r.Latency == nil {
			without++
		}
	}
	if len(latency)+len(rate) == 0 {
		return without
	}
	out.WriteString(perftestRule + "\n")
	fmt.Fprintf(out, "# %s; %s\n", view.Printable(g.Title()), view.Printable(g.Conditions()))
	if len(rates) > 0 {
		fmt.Fprintf(out, "# open loop, operations/s offered row by row: %s\n", strings.Join(rates, " "))
	}
	for _, r := range g.Results {
		if !r.Disturbance.Quiet() {
			fmt.Fprintf(out, "# %d bytes: %s\n", r.SizeBytes, view.Printable(r.Disturbance.String()))
		}
		if r.Verification != nil {
			fmt.Fprintf(out, "# %d bytes: %s\n", r.SizeBytes, r.Verification)
		}
		if r.OpenLoop != nil {
			fmt.Fprintf(out, "# %s\n", r.OpenLoop)
		}
		if l := r.Latency; l != nil && l.Unfinished > 0 {
			fmt.Fprintf(out, "# lower bounds at %s/s: %s\n", view.RateText(r.Rate), strings.Join(l.AtLeast, " "))
		}
	}
	if len(latency) > 0 {
		out.WriteString(perftestLatency + "\n" + strings.Join(latency, ""))
	}
	if len(ways) > 0 {
		fmt.Fprintf(out, "# BW average is the sum; client to server and server to client row by row: %s\n",
			strings.Join(ways, ", "))
	}
	if len(rate) > 0 {
		fmt.Fprintf(out, "# BW peak: the best part of the window, each part row by row: %s\n",
			strings.Join(peaks, ", "))
		fmt.Fprintf(out, perftestBandwidth+"\n", unit)
		out.WriteString(strings.Join(rate, ""))
	}
	return without
}

// directions are the bandwidths of the two of which a throughput is the sum; false for one direction.
func directions(r *reports.Result) (client, server float64, ok bool) {
	client, _ = r.Figure("from_client.bw")
	server, ok = r.Figure("from_server.bw")
	return client, server, ok
}

func peakLength(r *reports.Result) string {
	t := r.Throughput
	if _, _, ok := directions(r); ok {
		return "none (0.00, the sum has none)"
	}
	if t.PeakOverNs < 1 {
		return "none (0.00, too short a window)"
	}
	return view.Number(float64(t.PeakOverNs)/1e6, -1) + " msec"
}

func perftestRow(size, iterations int64, values ...string) string {
	var b strings.Builder
	fmt.Fprintf(&b, " %-10s %-14s", strconv.FormatInt(size, 10), strconv.FormatInt(iterations, 10))
	for _, v := range values {
		fmt.Fprintf(&b, " %-16s", v)
	}
	return strings.TrimRight(b.String(), " ") + "\n"
}
