package claims

import "time"

// What SoftRDMA is measured by. Its TCP/IP in user space is lwIP, which is in a build with -tags lwip alone.
var (
	fCases = &Run{Args: "conform --transport 'iwarp(stack=raw,link=shm)' " +
		"--only 'snd/*,imm/*,rdw/*,rdr/*,atm/*,ord/*,inv/*,flu/*,dth/*'"}
	fVerbs = &Run{Args: "run --transport 'iwarp(stack=raw,link=shm)' --workload latency,throughput --op send,write,read " +
		"-s 64,64K -n 1000"}
	fCopies = &Run{Args: "run --transport 'iwarp(stack=raw,link=shm),iwarp(stack=raw,link=shm,copies=two)' " +
		"--workload throughput --op send -s 64K -t 16 --warmup 5ms", Slice: 50 * time.Millisecond}
	// counters are of all rounds together
	fCounts = &Run{Args: "run --transport 'iwarp(stack=raw,link=shm),iwarp(stack=raw,link=shm,copies=two),iwarp' " +
		"--workload throughput --op send -s 64K -t 16 -n 2000 --rounds 1"}
	fThreads = &Run{Args: "run --transport " +
		"'iwarp(stack=raw,link=shm,threads=c1),iwarp(stack=raw,link=shm,threads=c2),iwarp(stack=raw,link=shm,threads=c3)' " +
		"--workload latency,throughput --op send --app-work 5us -s 1K -t 16 --warmup 5ms", Slice: 50 * time.Millisecond}
	fWork = &Run{Args: "run --transport 'iwarp(stack=raw,link=shm,threads=c2),iwarp(stack=raw,link=shm,threads=c3)' " +
		"--workload latency --op send -s 1K --rate 20000 --app-work 50us --warmup 5ms", Slice: 500 * time.Millisecond}
	fSchemes = &Run{Args: "run --transport 'iwarp(stack=raw,link=shm),iwarp(stack=sequential,link=shm),iwarp' " +
		"--workload softrdma -s 64,1000,10000 --warmup 5ms", Slice: 25 * time.Millisecond}
	fLoss = &Run{Args: "run --transport 'iwarp(stack=raw,link=shm),iwarp(stack=raw,link=shm,loss=0.001,seed=1)' " +
		"--workload throughput --op send -s 64K -t 16 --warmup 5ms", Slice: 50 * time.Millisecond}
)

const (
	fRaw        = "iwarp(stack=raw,link=shm)"
	fTwo        = "iwarp(stack=raw,link=shm,copies=two)"
	fSequential = "iwarp(stack=sequential,link=shm)"
	fC1         = "iwarp(stack=raw,link=shm,threads=c1)"
	fC2         = "iwarp(stack=raw,link=shm,threads=c2)"
	fC3         = "iwarp(stack=raw,link=shm,threads=c3)"
	fLossy      = "iwarp(stack=raw,link=shm,loss=0.001,seed=1)"
)

var softrdma = Paper{
	Name:   "softrdma",
	Title:  "SoftRDMA: iWARP on TCP/IP in user space",
	Source: "APNet'17, https://doi.org/10.1145/3106989.3106995, and its slides",
	Claims: []Claim{
		{ID: "F1", Says: "Sends, writes, reads and errors of iWARP work over TCP/IP in user space.", Source: "abstract",
			Rules: []Rule{Pass("the cases of messages, order and ends", fCases)}},
		{ID: "F2", Says: "The verbs of an adapter work over it.", Source: "abstract",
			Rules: []Rule{Pass("latency and throughput of send, write and read", fVerbs)}},
		{ID: "F3", Says: "One copy of a packet is faster than two.", Source: "slides: one-copy", Rules: []Rule{
			Ratio("64K sends, one copy over two", At{fCopies, "bw", fRaw, ""}, At{Stack: fTwo}).AtLeast(1.01).
				Against(At{Stack: fTwo}),
			Ratio("bytes that the receiver copied, two over one", At{fCounts, "server:rx_copied+octets_placed/op", fTwo, ""},
				At{Stack: fRaw}).AtLeast(1.5).Exact().Against(At{Stack: fRaw}),
		}},
		{ID: "F4", Says: "One thread has the least latency, and several the most throughput beside the application's work.",
			Source: "slides: threading models", Needs: Needs{CPUs: 4}, Rules: []Rule{
				Ratio("p50 of 1K, c2 over c1", At{fThreads, "p50", fC2, ""}, At{Stack: fC1}).AtMost(0.95).Against(At{Stack: fC1}),
				Ratio("streams of 1K, c3 over c2", At{fThreads, "bw", fC3, ""}, At{Stack: fC2}).AtLeast(1.05).
					Against(At{Stack: fC2}),
			}},
		{ID: "F5", Says: "As the application works more, a single thread is late for packets, and c3 is not.",
			Source: "slides: threading models; there packets are lost, here the link between processes waits",
			Needs:  Needs{CPUs: 4}, Rules: []Rule{
				Ratio("messages done of 20000 a second with 50 us of work each, c3 over c2", At{fWork, "load.completed", fC3, ""},
					At{Stack: fC2}).AtLeast(1.1).Against(At{Stack: fC2}),
			}},
		{ID: "F6", Says: "Latency of short messages: raw, then sequential, then kernel sockets.",
			Source: "slides: four schemes",
			Rules: []Rule{
				Order("p50 of 64 B", []string{"raw", "sequential", "kernel sockets"}, At{fSchemes, "p50", fRaw, "size=64"},
					At{fSchemes, "p50", fSequential, "size=64"}, At{fSchemes, "p50", "iwarp", "size=64"}).
					Against(At{Stack: "iwarp"}),
			}},
		{ID: "F7", Says: "Latency jumps where a message takes many segments.", Source: "slides",
			Published: []string{"SoftRDMA 6.63, 6.80, 52.20 us at 64 B, 1 KB, 10 KB", "RNIC 3.59, 5.3, 16 us"},
			Curves: []Curve{{"latency of a message, us by bytes, one at a time", "size", []string{"64", "1000", "10000"}, 1e3,
				[]Line{
					{Name: "RNIC", Published: []string{"3.59", "5.3", "16"}},
					{"raw (SoftRDMA)", []string{"6.63", "6.80", "52.20"}, At{fSchemes, "p50", fRaw, ""}, nil},
					{"sequential", nil, At{fSchemes, "p50", fSequential, ""}, nil},
					{"kernel sockets", nil, At{fSchemes, "p50", "iwarp", ""}, nil},
				}}},
			Rules: []Rule{
				Growth("p50 of raw, 10000 over 1000 B", At{fSchemes, "p50", fRaw, ""}, "size", "1000", "10000").AtLeast(2).
					Against(At{Where: "size=1000"}),
			}},
		{ID: "F8", Says: "The gap to an adapter closes for long messages.", Source: "slides",
			Published: []string{"100 KB: 101 us beside 93; 500 KB: 500 beside 432; throughput 88 % of the RNIC at 100 KB"},
			Needs:     Needs{Other: "an iWARP adapter to compare with"}},
		{ID: "F9", Says: "Throughput with one message at a time is not that with many.",
			Source: "slides' throughput is size by latency",
			Rules: []Rule{
				Growth("raw, 10000 B, 16 outstanding over 1", At{fSchemes, "bw", fRaw, "size=10000"}, "depth", "1", "16").
					AtLeast(1.2).Against(At{Where: "depth=1"}),
			}},
		{ID: "F10", Says: "Loss costs throughput, and no byte.", Source: "follows from TCP", Rules: []Rule{
			Ratio("64K sends, every 256th compared, 0.1 % lost over none", At{fLoss, "bw", fLossy, ""}, At{Stack: fRaw}).
				AtMost(0.9).Against(At{Stack: fRaw}),
			Pass("ends of peers that die, stop or are cut off", fCases, "dth/*"),
		}},
		{ID: "F11", Says: "The loop in user space makes no system call for a message.", Source: "design", Rules: []Rule{
			Count("client's socket calls a message, raw", At{fCounts, "client:send_calls+recv_calls/op", fRaw, ""}).
				AtMost(0.001).Against(At{Stack: "iwarp"}),
		}},
	},
}
