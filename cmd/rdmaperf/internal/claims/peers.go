package claims

import "time"

// Figures of other programs are those that they print, with their own clocks and warm-ups.
var (
	pLatency = &Run{Args: "run --transport 'tcp,iwarp,iwarp(nocrc)' --workload latency --op send -s 64",
		Slice: 100 * time.Millisecond, Beside: []*tool{pFloorLatency, pFabric, pUCXLatency, pMPI, pQperf}}
	pStream = &Run{Args: "run --transport 'tcp,iwarp,iwarp(nocrc)' --workload throughput --op write -s 1M -t 16",
		Slice: 100 * time.Millisecond, Beside: []*tool{pFloorStream, pUCXStream}}
	pRate = &Run{Args: "run --transport iwarp --workload throughput --op write -s 64 -t 128",
		Slice: 100 * time.Millisecond, Beside: []*tool{pUCXRate}}
)

const faster = 0.98 // what is as fast does not keep it

var peers = Paper{
	Name:   "peers",
	Title:  "rdmaperf beside other programs on this machine",
	Source: "a C program of two processes that spin on sockets, libfabric, UCX, Open MPI and qperf, all over TCP",
	Claims: []Claim{
		{ID: "P1", Says: "A message over plain TCP costs little more than a minimal C program needs.",
			Source: "64 B send, busy polling, half round trip", Rules: []Rule{
				Ratio("p50, tcp over the C program", At{pLatency, "p50", "tcp", ""}, At{Stack: "floor"}).AtMost(1.15).
					Against(At{Figure: "max"}),
			}},
		{ID: "P2", Says: "iWARP in user space adds at most a quarter to TCP's latency.", Source: "the same", Rules: []Rule{
			Ratio("p50, iwarp over tcp", At{pLatency, "p50", "iwarp", ""}, At{Stack: "tcp"}).AtMost(1.25).
				Against(At{Figure: "max"}),
			Ratio("iwarp(nocrc) over tcp", At{pLatency, "p50", "iwarp(nocrc)", ""}, At{Stack: "tcp"}),
		}},
		{ID: "P3", Says: "A message over iWARP is faster than over libfabric on TCP.", Source: "the same", Rules: []Rule{
			Ratio("mean, iwarp over libfabric", At{pLatency, "mean", "iwarp", ""}, At{Stack: "libfabric"}).AtMost(faster).
				Against(At{Stack: "libfabric"}),
		}},
		{ID: "P4", Says: "A message over iWARP is faster than over UCX on TCP.", Source: "the same; its tagged messages",
			Rules: []Rule{
				Ratio("p50, iwarp over ucx", At{pLatency, "p50", "iwarp", ""}, At{Stack: "ucx"}).AtMost(faster).
					Against(At{Stack: "ucx"}),
			}},
		{ID: "P5", Says: "A message over iWARP is faster than over Open MPI on TCP.",
			Source: "the same; MPI_Send and MPI_Recv", Rules: []Rule{
				Ratio("mean, iwarp over openmpi", At{pLatency, "mean", "iwarp", ""}, At{Stack: "openmpi"}).AtMost(faster).
					Against(At{Stack: "openmpi"}),
			}},
		{ID: "P6", Says: "A message over iWARP is faster than by qperf on TCP, which sleeps.",
			Source: "the same; tcp_lat", Rules: []Rule{
				Ratio("mean, iwarp over qperf", At{pLatency, "mean", "iwarp", ""}, At{Stack: "qperf"}).AtMost(faster).
					Against(At{Stack: "qperf"}),
			}},
		{ID: "P7", Says: "A stream over iWARP keeps most of TCP's rate.", Source: "1 MiB writes, 16 outstanding",
			Rules: []Rule{
				Ratio("iwarp over tcp", At{pStream, "bw", "iwarp", ""}, At{Stack: "tcp"}).AtLeast(0.8).Against(At{Stack: "ucx"}),
				Ratio("iwarp(nocrc) over tcp", At{pStream, "bw", "iwarp(nocrc)", ""}, At{Stack: "tcp"}).AtLeast(0.9).
					Against(At{Stack: "ucx"}),
				Ratio("tcp over the C program, 16 buffers", At{pStream, "bw", "tcp", ""}, At{Stack: "floor"}),
			}},
		{ID: "P8", Says: "A stream of writes over iWARP is faster than UCX's puts on TCP.",
			Source: "1 MiB, 16 outstanding; UCX: ucp_put_bw", Rules: []Rule{
				Ratio("iwarp over ucx", At{pStream, "bw", "iwarp", ""}, At{Stack: "ucx"}).AtLeast(1 / faster).
					Against(At{Stack: "ucx"}),
			}},
		{ID: "P9", Says: "Small writes over iWARP are at least 3 million a second.", Source: "64 B, 128 outstanding",
			Rules: []Rule{
				Value("iwarp", At{pRate, "rate", "iwarp", ""}).AtLeast(3e6).Against(At{pStream, "rate", "iwarp", ""}),
			}},
		{ID: "P10", Says: "Small writes over iWARP are more a second than UCX's puts.", Source: "64 B, 128 outstanding",
			Rules: []Rule{
				Ratio("iwarp over ucx", At{pRate, "rate", "iwarp", ""}, At{Stack: "ucx"}).AtLeast(1 / faster).
					Against(At{Stack: "ucx"}),
			}},
	},
}
