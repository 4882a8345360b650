package perftest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strconv"
	"strings"

	"github.com/rdmaperf/rdmaperf/reports"
)

const rule = "---------------------------------------------------------------------------------------\n"

// Waiting is what a server says when it is ready.
const Waiting = "\n************************************\n* Waiting for client to connect... " +
	"*\n************************************\n"

func (c *Command) name() string {
	kind := "BW"
	if c.Test.latency {
		kind = "Latency"
	} else if c.postList > 1 {
		kind = "Post List BW"
	}
	if c.both {
		kind = "Bidirectional " + kind
	}
	return c.Test.title + " " + kind + " Test"
}

func (l *Link) transportType() string {
	if l.IWARP {
		return "IW"
	}
	return "IB"
}

var onOff = map[bool]string{true: "ON", false: "OFF"}

// noPeak is whether this run has no peak: perftest looks for one among up to 20,000 messages.
func (c *Command) noPeak() bool {
	n, err := strconv.ParseInt(c.iters, 10, 64)
	return c.NoPeak || c.duration != "" || err == nil && n > 20000
}

// Warn writes what perftest says ahead of everything else.
func (c *Command) Warn(w io.Writer) error {
	if c.Test.latency || c.NoPeak || !c.noPeak() {
		return nil
	}
	_, err := io.WriteString(w, " WARNING: BW peak won't be measured in this run.\n")
	return err
}

// Banner writes what the tools print before they measure.
func (c *Command) Banner(w io.Writer, l *Link) error {
	if c.Output != "" {
		return nil
	}
	t := &c.Test
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s                    %s\n", rule, c.name())
	if c.events {
		fmt.Fprintf(&b, " Test with events. Using %s_comp0\n", l.Device)
	}
	fmt.Fprintf(&b, " Dual-port       : OFF\t\tDevice         : %s\n", l.Device)
	fmt.Fprintf(&b, " Number of qps   : %d\t\tTransport type : %s\n", c.qps, l.transportType())
	fmt.Fprintf(&b, " Connection type : RC\t\tUsing SRQ      : OFF\n")
	fmt.Fprintf(&b, " PCIe relax order: OFF\n ibv_wr* API     : OFF\n")
	fmt.Fprintf(&b, " Stack           : %s\n", l.Stack) // no line of perftest's
	if !c.Server() || c.both {
		fmt.Fprintf(&b, " TX depth        : %d\n", c.tx)
	}
	if c.postList > 1 {
		fmt.Fprintf(&b, " Post List       : %d\n", c.postList)
	}
	if t.receives && (c.Server() || c.both) {
		fmt.Fprintf(&b, " RX depth        : %d\n", c.rx)
	}
	if !t.latency {
		fmt.Fprintf(&b, " CQ Moderation   : %d\n", c.cqMod)
	}
	if l.Layer != "" {
		fmt.Fprintf(&b, " Mtu             : %d[B]\n Link type       : %s\n", l.MTU, l.Layer)
	}
	if l.GID >= 0 {
		fmt.Fprintf(&b, " GID index       : %d\n", l.GID)
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
		used := r.CPU.ClientSeconds
		if c.Server() {
			used = r.CPU.ServerSeconds
		}
		v.cpu = 100 * used / (float64(r.DurationNs) / 1e9) / float64(runtime.NumCPU())
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
	if !c.noPeak() {
		v.peak = t.PeakBytesPerSecond * factor
	}
	// perftest counts those of its own side; of sends for a duration those that it took as well.
	if c.both && !(c.Test.receives && c.duration != "") {
		n, err := fromClient(r)
		if err != nil {
			return v, err
		}
		v.iterations = n
	}
	return v, nil
}

// fromClient is how many messages the client sent, as a document has it, which is all that the server gets.
func fromClient(r *reports.Result) (int64, error) {
	b, err := json.Marshal(r)
	if err != nil {
		return 0, err
	}
	var read struct {
		Bidirectional *struct {
			FromClient struct{ Operations int64 } `json:"from_client"`
		}
	}
	if err := json.Unmarshal(b, &read); err != nil {
		return 0, err
	}
	if read.Bidirectional == nil {
		return 0, errors.New("no figures of both directions")
	}
	return read.Bidirectional.FromClient.Operations, nil
}

// Limits are -w and -y. As in perftest, one result of several is enough.
type Limits struct{ bw, rate bool }

// Missed says which limit no result reached, "" for none.
func (c *Command) Missed(l Limits) string {
	switch {
	case c.LimitBW > 0 && !l.bw:
		return "BW result is below bw limit"
	case c.LimitRate > 0 && !l.rate:
		return "Msg rate  is below msg_rate limit"
	}
	return ""
}

// Result writes one line, or the one figure that --output asks for, and notes which limits it reached.
func (c *Command) Result(w io.Writer, r *reports.Result, reached *Limits) error {
	v, err := c.row(r)
	if err != nil {
		return err
	}
	reached.bw, reached.rate = reached.bw || v.average >= c.LimitBW, reached.rate || v.rate >= c.LimitRate
	if alone, ok := map[string]float64{"bandwidth": v.average, "message_rate": v.rate, "latency": v.avg}[c.Output]; ok {
		_, err = fmt.Fprintf(w, "%f\n", alone)
		return err
	}
	var line string
	switch {
	case c.Test.latency && c.duration != "":
		line = fmt.Sprintf(" %-7d       %d            %-7.2f        %-7.2f", v.size, v.iterations, v.avg, v.tps)
	case c.Test.latency:
		line = fmt.Sprintf(" %-7d %d          %-7.2f        %-7.2f      %-7.2f  \t       %-7.2f     "+
			"\t%-7.2f\t\t%-7.2f \t\t%-7.2f", v.size, v.iterations, v.min, v.max, v.typical, v.avg, v.stdev, v.p99, v.p999)
	case c.fine(v.average):
		line = fmt.Sprintf(" %-7d    %d           %-7.6f            %-7.6f            %-7.6f", v.size, v.iterations, v.peak,
			v.average, v.rate)
	default:
		line = fmt.Sprintf(" %-7d    %-10d       %-7.2f            %-7.2f\t\t     %-7.6f", v.size, v.iterations, v.peak,
			v.average, v.rate)
	}
	if c.CPUUtil {
		line += fmt.Sprintf("\t    %-3.2f", v.cpu)
	}
	_, err = io.WriteString(w, line+"\n")
	return err
}

func (c *Command) fine(average float64) bool { return c.Gbits && average < 0.1 }

// Samples writes what -U and -H ask for, every sample by number, in us, and the names of the columns once more.
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
