package perftest

import (
	"bytes"
	"fmt"
	"io"
	"strings"

	"github.com/rdmaperf/rdmaperf/reports"
)

type pair struct{ name, value string }

func text(name, value string) pair    { return pair{name, fmt.Sprintf("%q", value)} }
func count(name string, n int64) pair { return pair{name, fmt.Sprint(n)} }
func figure(name string, decimals int, v float64) pair {
	return pair{name, fmt.Sprintf("%.*f", decimals, v)}
}

func object(pairs []pair) string {
	lines := make([]string, len(pairs))
	for i, p := range pairs {
		lines[i] = fmt.Sprintf("%q: %s", p.name, p.value)
	}
	return "{\n" + strings.Join(lines, ",\n") + "\n}"
}

// info is what a document says of the test (write_test_info_to_file).
func (c *Command) info(l *Link) []pair {
	info := []pair{text("test", strings.ReplaceAll(c.name(), " ", "_"))}
	if c.events {
		info = append(info, text("Test with events", "Using_"+l.Device+"_comp0"))
	}
	info = append(info, text("Dual_port", "OFF"), text("Device", l.Device), count("Number_of_qps", int64(c.qps)),
		text("Transport_type", l.transportType()), text("Connection_type", "RC"), text("Using_SRQ", "OFF"),
		text("PCIe_relax_order", "OFF"), text("ibv_wr_API", "OFF"))
	for _, v := range []struct {
		is    bool
		name  string
		value int
	}{{!c.Server() || c.both, "TX_depth", c.tx}, {c.postList > 1, "Post_List", c.postList},
		{c.Test.receives && (c.Server() || c.both), "RX_depth", c.rx}, {!c.Test.latency, "CQ_Moderation", c.cqMod},
		{l.Layer != "", "Mtu", l.MTU}} {
		if v.is {
			info = append(info, count(v.name, int64(v.value)))
		}
	}
	if l.Layer != "" {
		info = append(info, text("Link_type", l.Layer))
	}
	if l.GID >= 0 {
		info = append(info, count("GID_index", int64(l.GID)))
	}
	if c.Test.oneSided {
		info = append(info, count("Outstand_reads", int64(c.reads)))
	} else {
		info = append(info, count("Max_inline_data", int64(c.inline)))
	}
	info = append(info, text("rdma_cm_QPs", onOff[c.cm]), text("Use_ROCm_memory", "OFF"), text("Use_MUSA_memory", "OFF"),
		text("Data_ex_method", "Ethernet"))
	if c.cm && c.tos > 0 {
		info = append(info, count("TOS", int64(c.tos)))
	}
	return info
}

// figures are those of a result (REPORT_FMT_JSON, REPORT_FMT_LAT_JSON and so on).
func (c *Command) figures(v *row) []pair {
	list := []pair{count("MsgSize", v.size), count("n_iterations", v.iterations)}
	decimals := 2
	if c.fine(v.average) {
		decimals = 6
	}
	switch {
	case c.Output == "bandwidth":
		return []pair{figure("bw_avg", 6, v.average)}
	case c.Output == "message_rate":
		return []pair{figure("msgRate_avg", 6, v.rate)}
	case c.Output == "latency" && c.duration != "":
		return []pair{figure("t_avg", 6, v.avg)}
	case c.Output == "latency":
		return []pair{figure("avg_lat", 6, v.avg)}
	case c.Test.latency && c.duration != "":
		list = append(list, figure("t_avg", 2, v.avg), figure("tps_average", 2, v.tps))
	case c.Test.latency:
		list = append(list, figure("t_min", 2, v.min), figure("t_max", 2, v.max), figure("t_typical", 2, v.typical),
			figure("t_avg", 2, v.avg), figure("t_stdev", 2, v.stdev), figure("percentile_99", 2, v.p99),
			figure("percentile_99.9", 2, v.p999))
	default:
		list = append(list, figure("BW_peak", decimals, v.peak), figure("BW_average", decimals, v.average),
			figure("MsgRate", 6, v.rate))
	}
	if c.CPUUtil {
		list = append(list, figure("CPU_util", 2, v.cpu))
	}
	return list
}

// WriteJSON writes the results under perftest's names; of several sizes, a list.
func (c *Command) WriteJSON(w io.Writer, l *Link, results []reports.Result) error {
	var list []string
	for i := range results {
		v, err := c.row(&results[i])
		if err != nil {
			return err
		}
		list = append(list, object(c.figures(&v)))
	}
	all := strings.Join(list, ",\n")
	if len(list) != 1 {
		all = "[\n" + all + "\n]"
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "{\n\"test_info\": %s,\n\"results\": %s\n}\n", object(c.info(l)), all)
	_, err := w.Write(b.Bytes())
	return err
}
