package claims

import (
	"regexp"

	"github.com/rdmaperf/rdmaperf/reports"
)

var (
	pFloorLatency = &tool{stack: "floor", program: "cc", packages: "gcc libc6-dev", source: "floor",
		client: "DIR/floor latency 64 SECONDS", figure: asTime("p50"), value: regexp.MustCompile(`"p50_ns":([0-9.]+)`), unit: 1}
	// A verified stream has a buffer for each message on its way, and copies between so many come from the L3 cache.
	pFloorStream = &tool{stack: "floor", program: "cc", packages: "gcc libc6-dev", source: "floor",
		client: "DIR/floor stream 1048576 SECONDS 16", figure: asBytes(),
		value: regexp.MustCompile(`"bytes_per_second":([0-9.]+)`), unit: 1}
	pFabric = &tool{stack: "libfabric", program: "fi_pingpong", packages: "libfabric-bin",
		server: "fi_pingpong -p tcp -e msg -I COUNT -S 64 -B PORT",
		client: "fi_pingpong -p tcp -e msg -I COUNT -S 64 -P PORT 127.0.0.1", perSecond: 100e3, figure: asTime("mean"),
		value: regexp.MustCompile(`(?m)^64(?:\s+\S+){5}\s+([0-9.]+)\s+\S+\s*$`), unit: 1e3}
	pUCXLatency = ucx("tag_lat -s 64 -n COUNT", 100e3, asTime("p50"), `(?m)^Final:\s+\d+\s+([0-9.]+)`, 1e3)
	pUCXStream  = ucx("ucp_put_bw -s 1048576 -O 16 -n COUNT -w 100", 2000, asBytes(),
		`(?m)^Final:(?:\s+\S+){5}\s+([0-9.]+)`, 1<<20) // its MB are 2^20 bytes
	pUCXRate = ucx("ucp_put_bw -s 64 -O 128 -n COUNT", 400e3, asRate(), `(?m)^Final:(?:\s+\S+){7}\s+([0-9.]+)`, 1)
	pQperf   = qperf("-m 64 tcp_lat", asTime("mean"))
	pMPI     = &tool{stack: "openmpi", program: "mpicc", packages: "openmpi-bin libopenmpi-dev", source: "mpi",
		client: "mpirun --allow-run-as-root --mca btl tcp,self -n 2 DIR/mpi 64 SECONDS", figure: asTime("mean"),
		value: regexp.MustCompile(`latency = ([0-9.]+) (ns)`)}
)

// ucx is ucx_perftest over TCP.
func ucx(test string, perSecond float64, f reports.Figure, value string, unit float64) *tool {
	return &tool{stack: "ucx", program: "ucx_perftest", packages: "ucx-utils", server: "ucx_perftest -p PORT",
		client: "ucx_perftest 127.0.0.1 -p PORT -t " + test, perSecond: perSecond, figure: f,
		value: regexp.MustCompile(value), unit: unit, environ: []string{"UCX_TLS=tcp,self", "UCX_WARN_UNUSED_ENV_VARS=n"}}
}

func qperf(test string, f reports.Figure) *tool {
	return &tool{stack: "qperf", program: "qperf", packages: "qperf", server: "qperf -lp PORT",
		client: "qperf 127.0.0.1 -lp PORT -t SECONDS " + test, least: 1, figure: f,
		value: regexp.MustCompile(`(?m)^\s*(?:latency|bw)\s*=\s*([0-9.]+) (\S+)$`)}
}

func asTime(name string) reports.Figure {
	return reports.Figure{Name: name, Quantity: reports.QuantityTime, Better: reports.Less}
}

func asBytes() reports.Figure {
	return reports.Figure{Name: "bw", Quantity: reports.QuantityBytes, Better: reports.More}
}

func asRate() reports.Figure {
	return reports.Figure{Name: "rate", Quantity: reports.QuantityRate, Better: reports.More}
}
