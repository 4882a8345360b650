package claims

// What RR-Compound is measured by.
var (
	cCases = &Run{Args: "conform --transport 'grpc(dropin)+iwarp,grpc(fused)+iwarp' --only 'call/*,interop/*,peer/*'"}
	cRing  = &Run{Args: "conform --transport 'grpc(dropin,ring=16K)+iwarp,grpc(fused,ring=16K)+iwarp' " +
		"--only call/far-above-the-ring,call/unread-stream,interop/large-unary,chan/large-messages"}
	cModes = &Run{Args: "run --transport 'grpc(tcp),grpc(dropin,bp)+iwarp,grpc(dropin)+iwarp,grpc(dropin,event)+iwarp' " +
		"--workload rpc --rpc stream,unary -s 32 --response 8", Full: "--rounds 40 -D 4s",
		Quick: "--rounds 12 -D 300ms --warmup 5ms"}
	// each by itself: a stack that polls costs those beside it
	cIdleBP    = &Run{Args: "run --transport 'grpc(dropin,bp)+iwarp' --workload rpc -s 32 -n 1000"}
	cIdleBPEV  = &Run{Args: "run --transport 'grpc(dropin)+iwarp' --workload rpc -s 32 -n 1000"}
	cIdleEvent = &Run{Args: "run --transport 'grpc(dropin,event)+iwarp' --workload rpc -s 32 -n 1000"}
	cMany      = &Run{Args: "run --transport 'grpc(tcp),grpc(dropin,bp)+iwarp,grpc(dropin)+iwarp,grpc(dropin,event)+iwarp' " +
		"--workload rpc --rpc stream -s 32 --response 8 --qp-sweep 1,16,64", Full: "--rounds 40 -D 4s",
		Quick: "--rounds 12 -D 300ms --warmup 5ms"}
	cBusy = &Run{Args: "run --transport 'grpc(fused,busy=0s)+iwarp,grpc(fused)+iwarp' --workload rpc -s 32 --response 8",
		Full: "--rounds 40 -D 4s", Quick: "--rounds 12 -D 400ms --warmup 5ms"}
	cPollers = &Run{Args: "run --transport 'grpc(dropin,busy=0s)+iwarp,grpc(dropin,busy=0s,pollers=3)+iwarp' --workload rpc " +
		"-s 32 --response 8 -q 64", Full: "--rounds 40 -D 4s", Quick: "--rounds 12 -D 400ms --warmup 5ms"}
	cRings = &Run{Args: "run --transport 'grpc(dropin,ring=16K)+iwarp,grpc(dropin,ring=256K)+iwarp,grpc(dropin,ring=2M)+iwarp'" +
		" --workload rpc -s 128K --response 8", Full: "--rounds 40 -D 4s", Quick: "--rounds 12 -D 400ms --warmup 5ms"}
	cConns = &Run{Args: "run --transport 'grpc(tcp),grpc(dropin)+iwarp,grpc(dropin,bp)+iwarp' --workload rpc -s 32 " +
		"--response 8 --qp-sweep 1,64 --rate 2000", Full: "--rounds 40 -D 4s", Quick: "--rounds 12 -D 400ms --warmup 5ms"}
	cStore = &Run{Args: "run --transport 'grpc(tcp),grpc(fused)+iwarp' --workload kv --ycsb a --records 1000",
		Full: "--rounds 40 -D 4s", Quick: "--rounds 12 -D 400ms --warmup 5ms"}
	cTensors = &Run{Args: "run --transport 'grpc(tcp),grpc(fused)+iwarp' --workload tensor --tensor exchange -s 1M",
		Full: "--rounds 40 -D 4s", Quick: "--rounds 12 -D 400ms --warmup 5ms"}
)

const (
	cTCP   = "grpc(tcp)"
	cBP    = "grpc(dropin,bp)+iwarp"
	cBPEV  = "grpc(dropin)+iwarp"
	cEvent = "grpc(dropin,event)+iwarp"
	cFused = "grpc(fused)+iwarp"
	cSmall = "grpc(dropin,ring=16K)+iwarp"
	c256K  = "grpc(dropin,ring=256K)+iwarp"
	c2M    = "grpc(dropin,ring=2M)+iwarp"
)

var rrcompound = Paper{
	Name:   "rrcompound",
	Title:  "RR-Compound: gRPC over RDMA with busy and event polling",
	Source: "TPDS'24; figures of its repository's logs (pwrliang/grpc-rdma)",
	Claims: []Claim{
		{ID: "C1", Says: "gRPC works unchanged over the transport.", Source: "abstract", Rules: []Rule{
			Pass("calls, streams, metadata, deadlines and the interoperability cases", cCases, "call/*", "interop/*")}},
		{ID: "C2", Says: "Where a peer has no RDMA, calls go by TCP.", Source: "as brpc does",
			Needs: Needs{Other: "a case of conform that dials with fallback, which is not there yet"}},
		{ID: "C3", Says: "Messages that wrap the ring and exceed it arrive exactly.", Source: "ring_buffer.h",
			Rules: []Rule{Pass("rings of 16 KiB", cRing, "call/far-above-the-ring", "*/large-*")}},
		{ID: "C4", Says: "A reader that is slow stops the sender, which goes on when it reads.", Source: "pair.cc",
			Rules: []Rule{Pass("rings of 16 KiB", cRing, "call/unread-stream")}},
		{ID: "C5", Says: "Streams of small calls are far faster than by TCP, and BPEV is near busy polling.",
			Source:    "logs, th-pitzer-40-threads, numa false",
			Published: []string{"1 client: BPEV 118, BP 256, EVENT 95, TCP 41 kRPC/s", "32 clients: 4011, 4989, 795, 858"},
			Rules: []Rule{
				Ratio("one stream, BPEV over TCP", At{cModes, "rate", cBPEV, "call=stream"}, At{cModes, "rate", cTCP, "call=stream"}).
					AtLeast(1.2).Against(At{Stack: cTCP}),
				Ratio("BPEV over BP", At{cModes, "rate", cBPEV, "call=stream"}, At{cModes, "rate", cBP, "call=stream"}).
					AtLeast(0.8).Against(At{Stack: cTCP}),
				Ratio("EVENT over BP", At{cModes, "rate", cEvent, "call=stream"}, At{cModes, "rate", cBP, "call=stream"}),
			}},
		{ID: "C5m", Says: "BPEV stays near busy polling with many clients, and events do not.", Source: "the same logs",
			Published: []string{"64 clients: BPEV 4307, BP 5291, EVENT 793, TCP 1162 kRPC/s"}, Needs: Needs{CPUs: 4},
			Rules: []Rule{
				Ratio("64 streams, BPEV over BP", At{cMany, "rate", cBPEV, "qps=64"}, At{cMany, "rate", cBP, "qps=64"}).
					AtLeast(0.8).Against(At{Stack: cEvent}),
			}},
		{ID: "C5u", Says: "Unary calls gain less.", Source: "logs, th-pitzer-64-threads-no-coalesce",
			Published: []string{"1 client: BPEV 45, TCP 29 kRPC/s", "32: 524, 522", "64: 490, 734"}, Rules: []Rule{
				Ratio("one client, BPEV over TCP", At{cModes, "rate", cBPEV, "call=unary"}, At{cModes, "rate", cTCP, "call=unary"}).
					AtLeast(1.2).Against(At{Stack: cTCP}),
			}},
		{ID: "C6", Says: "Without busy polling calls are slow; the time of it matters little from a round trip on.",
			Source: "logs of the sweep", Rules: []Rule{
				Ratio("p50, busy for 200 us over not", At{cBusy, "p50", cFused, ""}, At{cBusy, "p50", "grpc(fused,busy=0s)+iwarp", ""}).
					AtMost(0.9).Against(At{Stack: "grpc(fused,busy=0s)+iwarp"}),
			}},
		{ID: "C7", Says: "Two or three background pollers are enough.", Source: "logs of the sweep", Needs: Needs{CPUs: 4},
			Rules: []Rule{
				Ratio("64 connections, 3 pollers over 1", At{cPollers, "rate", "grpc(dropin,busy=0s,pollers=3)+iwarp", ""},
					At{cPollers, "rate", "grpc(dropin,busy=0s)+iwarp", ""}).AtLeast(1.1).
					Against(At{Stack: "grpc(dropin,busy=0s)+iwarp"}),
			}},
		{ID: "C8", Says: "A larger ring helps long messages, up to a size.", Source: "logs of the sweep", Rules: []Rule{
			Ratio("128K calls, ring of 256K over 16K", At{cRings, "rate", c256K, ""}, At{cRings, "rate", cSmall, ""}).
				AtLeast(1.2).Against(At{Stack: cSmall}),
			Ratio("2M over 256K", At{cRings, "rate", c2M, ""}, At{cRings, "rate", c256K, ""}),
		}},
		{ID: "C9", Says: "Idle connections cost busy polling a CPU, BPEV a poller, and events nothing.", Source: "logs",
			Rules: []Rule{
				Count("CPUs of an idle client, BP", At{cIdleBP, "idle.client", cBP, ""}).AtLeast(0.5).
					Against(At{cIdleEvent, "idle.client", cEvent, ""}),
				Count("EVENT", At{cIdleEvent, "idle.client", cEvent, ""}).AtMost(0.1).
					Against(At{cIdleBP, "idle.client", cBP, ""}),
				Count("BPEV", At{cIdleBPEV, "idle.client", cBPEV, ""}).AtMost(0.5).
					Against(At{cIdleBP, "idle.client", cBP, ""}),
			}},
		{ID: "C10", Says: "A connection has memory for a ring and half of one.", Source: "pair.cc",
			Published: []string{"ring of 4 MiB, send buffer of half"}, Rules: []Rule{
				Count("registered for a connection with a ring of 256K", At{cRings, "registered.each", c256K, ""}).
					AtLeast(1.4 * 256 * 1024).AtMost(1.6 * 256 * 1024).Against(At{Stack: c2M}),
			}},
		{ID: "C11", Says: "Latency is flat over many connections at a fixed rate.", Source: "logs",
			Published: []string{"22 to 26 us at 320 connections; labelled P99, which is the 0.99th percentile there"},
			Needs:     Needs{CPUs: 4}, Rules: []Rule{
				Growth("p50, 64 over 1 connections, BPEV", At{cConns, "p50", cBPEV, ""}, "qps", "1", "64").AtMost(2).
					Against(At{Stack: cBP}),
			}},
		{ID: "C12", Says: "It is ahead of mRPC.", Source: "abstract",
			Published: []string{"throughput +14.77 % with 64 clients, latency -42.55 %"},
			Needs:     Needs{Other: "mRPC; grpc(service) has its queues in shared memory, but marshals in the program"}},
		{ID: "C13", Says: "A key-value store gains over TCP.", Source: "abstract",
			Published: []string{"up to 2.35 times the throughput, 46.92 % less mean latency, over IPoIB"}, Rules: []Rule{
				Ratio("YCSB a, calls a second, fused over TCP", At{cStore, "rate", cFused, ""}, At{cStore, "rate", cTCP, ""}).
					AtLeast(2.35).Published().Against(At{Stack: cTCP}),
				Ratio("mean latency", At{cStore, "mean", cFused, ""}, At{cStore, "mean", cTCP, ""}).AtMost(1 - 0.4692).
					Published().Against(At{Stack: cTCP}),
			}},
		{ID: "C14", Says: "Exchanges of tensors gain over TCP.", Source: "abstract", Rules: []Rule{
			Ratio("1M each way, p50, fused over TCP", At{cTensors, "p50", cFused, ""}, At{cTensors, "p50", cTCP, ""}).AtMost(0.9).
				Against(At{Stack: cTCP}),
		}},
		{ID: "C15", Says: "Calls to a peer that dies end as unavailable.", Source: "follows from the design",
			Rules: []Rule{Pass("peers that are killed", cCases, "peer/*")}},
		{ID: "C16", Says: "Percentiles are what they are called.", Source: "its logs have a P99 below the mean",
			Rules: []Rule{Order("p50, p99 and the longest", []string{"p50", "p99", "max"}, At{cStore, "p50", cTCP, ""},
				At{cStore, "p99", cTCP, ""}, At{cStore, "max", cTCP, ""}).Exact().Against(At{Figure: "max"})}},
	},
}
