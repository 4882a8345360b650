package perftest

import (
	"encoding/json"
	"io"
	"strings"

	"github.com/rdmaperf/rdmaperf/reports"
)

// info is what a document says of the test. What is the device's alone to know, its link
// and its way to post, is not there.
func (c *Command) info(iwarp bool) map[string]any {
	info := map[string]any{"test": strings.ReplaceAll(c.name(), " ", "_"), "Dual_port": "OFF", "Device": c.deviceName(),
		"Number_of_qps":  c.qps,
		"Transport_type": transportType(iwarp), "Connection_type": "RC", "Using_SRQ": "OFF", "TX_depth": c.tx,
		"rdma_cm_QPs": onOff[c.cm], "Data_ex_method": "Ethernet"}
	for name, v := range map[string]struct {
		is    bool
		value int
	}{"RX_depth": {c.Test.receives, c.rx}, "CQ_Moderation": {!c.Test.latency, c.cqMod},
		"Post_List": {c.postList > 1, c.postList}, "Mtu": {c.mtu > 0, c.mtu},
		"GID_index": {c.gid >= 0, c.gid}, "Outstand_reads": {c.Test.oneSided, c.reads},
		"Max_inline_data": {!c.Test.oneSided, c.inline}} {
		if v.is {
			info[name] = v.value
		}
	}
	return info
}

// WriteJSON writes the results under perftest's names; of several sizes, a list.
func (c *Command) WriteJSON(w io.Writer, iwarp bool, results []reports.Result) error {
	type object = map[string]any
	var list []object
	for i := range results {
		v, err := c.row(&results[i])
		if err != nil {
			return err
		}
		o := object{"MsgSize": v.size, "n_iterations": v.iterations}
		switch {
		case c.Test.latency && c.duration != "":
			o["t_avg"], o["tps_average"] = v.avg, v.tps
		case c.Test.latency:
			o["t_min"], o["t_max"], o["t_typical"], o["t_avg"], o["t_stdev"], o["percentile_99"],
				o["percentile_99.9"] = v.min, v.max, v.typical, v.avg, v.stdev, v.p99, v.p999
		default:
			o["BW_peak"], o["BW_average"], o["MsgRate"] = v.peak, v.average, v.rate
		}
		if c.CPUUtil {
			o["CPU_util"] = v.cpu
		}
		list = append(list, o)
	}
	doc := object{"test_info": c.info(iwarp)}
	if doc["results"] = any(list); len(list) == 1 {
		doc["results"] = list[0]
	}
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	return enc.Encode(doc)
}
