package perftest

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"runtime"
	"strings"

	"github.com/rdmaperf/rdmaperf/reports"
)

const rule = "---------------------------------------------------------------------------------------\n"

// Waiting is what a server says when it is ready.
const Waiting = "\n************************************\n* Waiting for client to connect... " +
	"*\n************************************\n"

// name is the test's as banners and documents have it.
func (c *Command) name() string {
	kind := "BW"
	switch {
	case c.Test.latency:
		kind = "Latency"
	case c.both:
		kind = "Bidirectional BW"
	}
	return c.Test.title + " " + kind + " Test"
}

// deviceName is the device that was asked for.
func (c *Command) deviceName() string { return cmp.Or(c.device, "-") }

func transportType(iwarp bool) string {
	if iwarp {
		return "IW"
	}
	return "IB"
}

var onOff = map[bool]string{true: "ON", false: "OFF"}

// Banner writes what the tools print before they measure.
func (c *Command) Banner(w io.Writer, stack string, iwarp bool) error {
	if c.Output != "" {
		return nil
	}
	t := &c.Test
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s                    %s\n", rule, c.name())
	fmt.Fprintf(&b, " Dual-port       : OFF\t\tDevice         : %s\n", c.deviceName())
	fmt.Fprintf(&b, " Number of qps   : %d\t\tTransport type : %s\n", c.qps, transportType(iwarp))
	fmt.Fprintf(&b, " Connection type : RC\t\tUsing SRQ      : OFF\n")
	fmt.Fprintf(&b, " Stack           : %s\n", stack) // no line of perftest's
	if !c.Server() || c.both {
		fmt.Fprintf(&b, " TX depth        : %d\n", c.tx)
	}
	if t.receives && (c.Server() || c.both) {
		fmt.Fprintf(&b, " RX depth        : %d\n", c.rx)
	}
	if !t.latency {
		fmt.Fprintf(&b, " CQ Moderation   : %d\n", c.cqMod)
	}
	if c.mtu > 0 {
		fmt.Fprintf(&b, " Mtu             : %d[B]\n", c.mtu)
	}
	if c.gid >= 0 {
		fmt.Fprintf(&b, " GID index       : %d\n", c.gid)
	}
	if t.oneSided {
		fmt.Fprintf(&b, " Outstand reads  : %d\n", c.reads)
	} else {
		fmt.Fprintf(&b, " Max inline data : %d[B]\n", c.inline)
	}
	fmt.Fprintf(&b, " rdma_cm QPs\t : %s\n Data ex. method : Ethernet\n%s", onOff[c.cm], rule)
	_, err := w.Write(b.Bytes())
	return err
}

// Head writes the line of column names.
func (c *Command) Head(w io.Writer) error {
	if c.Output != "" {
		return nil
	}
	unit, cpu := "MiB/sec", "\n"
	if c.Gbits {
		unit = "Gb/sec"
	}
	if c.CPUUtil {
		cpu = "    CPU_Util[%]\n"
	}
	var head string
	switch {
	case c.Test.latency && c.duration != "":
		head = " #bytes        #iterations       t_avg[usec]    tps average"
	case c.Test.latency:
		head = " #bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]    t_avg[usec]    t_stdev[usec]   " +
			"99% percentile[usec]   99.9% percentile[usec] "
	default:
		head = fmt.Sprintf(" #bytes     #iterations    BW peak[%[1]s]    BW average[%[1]s]   MsgRate[Mpps]", unit)
	}
	_, err := io.WriteString(w, head+cpu)
	return err
}

// row is one result as perftest has it.
type row struct {
	size, iterations       int64
	min, max, typical, avg float64 // us
	stdev, p99, p999, tps  float64
	peak, average, rate    float64 // in the unit asked for; millions a second
	cpu                    float64 // percent
}

func (c *Command) row(r *reports.Result) (row, error) {
	v := row{size: r.SizeBytes, iterations: r.Operations}
	if r.CPU != nil && r.DurationNs > 0 {
		v.cpu = 100 * r.CPU.ClientSeconds / (float64(r.DurationNs) / 1e9) / float64(runtime.NumCPU())
	}
	if l := r.Latency; l != nil && c.Test.latency {
		v.iterations = l.Count
		v.min, v.max, v.typical, v.avg, v.stdev, v.p99, v.p999 = l.Min/1e3, l.Max/1e3, l.P50/1e3, l.Mean/1e3,
			l.StdDev/1e3, l.P99/1e3, l.P999/1e3
		if r.DurationNs > 0 {
			v.tps = float64(l.Count) / (float64(r.DurationNs) / 1e9)
		}
		return v, nil
	}
	t := r.Throughput
	if t == nil || c.Test.latency {
		return v, fmt.Errorf("no figures of %s", c.Test.Name)
	}
	factor := 1.0 / (1 << 20)
	if c.Gbits {
		factor = 8 / 1e9
	}
	v.average, v.rate = t.BytesPerSecond*factor, t.OperationsPerSecond/1e6
	if !c.NoPeak {
		v.peak = t.PeakBytesPerSecond * factor
	}
	return v, nil
}

// Result writes one line, or the one figure that --output asks for, and tells whether a
// limit of -w or -y was missed. perftest's limits are in the unit of the table and in
// millions a second.
func (c *Command) Result(w io.Writer, r *reports.Result) (missed string, err error) {
	v, err := c.row(r)
	if err != nil {
		return "", err
	}
	if v.average < c.LimitBW {
		missed = fmt.Sprintf("BW average %.2f is below the limit of %g", v.average, c.LimitBW)
	}
	if v.rate < c.LimitRate {
		missed = fmt.Sprintf("message rate %.6f is below the limit of %g", v.rate, c.LimitRate)
	}
	switch c.Output {
	case "bandwidth":
		_, err = fmt.Fprintf(w, "%f\n", v.average)
		return missed, err
	case "message_rate":
		_, err = fmt.Fprintf(w, "%f\n", v.rate)
		return missed, err
	case "latency":
		_, err = fmt.Fprintf(w, "%f\n", v.avg)
		return missed, err
	}
	var line string
	switch {
	case c.Test.latency && c.duration != "":
		line = fmt.Sprintf(" %-7d       %d            %-7.2f        %-7.2f", v.size, v.iterations, v.avg, v.tps)
	case c.Test.latency:
		line = fmt.Sprintf(" %-7d %d          %-7.2f        %-7.2f      %-7.2f  \t       %-7.2f     "+
			"\t%-7.2f\t\t%-7.2f \t\t%-7.2f",
			v.size, v.iterations, v.min, v.max, v.typical, v.avg, v.stdev, v.p99, v.p999)
	default:
		line = fmt.Sprintf(" %-7d    %-10d       %-7.2f            %-7.2f\t\t     %-7.6f", v.size, v.iterations, v.peak,
			v.average, v.rate)
	}
	if c.CPUUtil {
		line += fmt.Sprintf("\t    %-3.2f", v.cpu)
	}
	_, err = io.WriteString(w, line+"\n")
	return missed, err
}

// Samples writes what -U and -H ask for, every sample by number, in us, and the names of the
// columns once more.
func (c *Command) Samples(w io.Writer, inOrder, sorted []float64) error {
	var b strings.Builder
	for _, s := range []struct {
		asked  bool
		values []float64
	}{{c.Unsorted, inOrder}, {c.Histogram, sorted}} {
		if !s.asked {
			continue
		}
		b.WriteString("#, usec\n")
		for i, v := range s.values {
			fmt.Fprintf(&b, "%d, %g\n", i+1, v)
		}
	}
	if b.Len() == 0 {
		return nil
	}
	if c.Output == "" {
		b.WriteString(rule)
	}
	if _, err := io.WriteString(w, b.String()); err != nil {
		return err
	}
	return c.Head(w)
}

// End writes the last line.
func (c *Command) End(w io.Writer) error {
	if c.Output != "" {
		return nil
	}
	_, err := io.WriteString(w, rule)
	return err
}
