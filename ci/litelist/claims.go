package main

// claims are LITE's, as the design notes of the project number them: of the paper, and of
// the code that its authors published. Bounds without a source are marked arbitrary.
var claims = []claim{
	{"L1", "join, malloc, map by name, read, write, free, unmap; a stale handle is an error", func(r *runner) {
		r.conform("mem/shared-by-name", "handle/unmapped", "handle/freed-while-mapped")
	}},
	{"L2", "permissions and masters: what is not allowed is refused with its code", func(r *runner) {
		r.conform("mem/password", "mem/read-only", "mem/write-only", "mem/atomic-permission", "mem/masters-alone",
			"mem/grant", "handle/moved-while-mapped")
	}},
	{"L3", "a region spans nodes, and an access over its chunks goes to the node of each", func(r *runner) {
		r.conform("mem/spans-nodes")
		r.test("./transports/lite", "TestARegionSpansNodes")
	}},
	{"L4", "many regions: native falls when the keys do not fit, LITE is flat", showCounts},
	{"L5", "large regions: native falls beyond a few MiB, LITE is flat", showTotals},
	{"L6", "the tier costs little, and a hidden crossing less than one that is not", showOverhead},
	{"L7", "registration is avoided: it grows with every page, making and mapping a region does not", showMaking},
	{"L8", "few shared queue pairs: their number is constant, and the rate is native's", showSharing},
	{"L9", "calls: wrap, full ring, out of order, 0 B to 2 MiB, codes; nothing unacknowledged is written over",
		func(r *runner) {
			r.conform("call/every-length", "call/no-port", "call/ring-full", "call/too-big", "call/codes",
				"call/deadline")
			r.test("./transports/lite/ring", "TestARecordNeverCrossesTheEndAndNeverStalls",
				"TestTheReceiverRefusesWhatNoSenderSends")
			r.test("./transports/lite", "TestAFullRingWaitsAndLosesNothing", "TestCallsOfEverySizeComeBackWhole",
				"TestCallErrorsHaveTheirCodes")
		}},
	{"L10", "a call is two writes with immediate, and one thread polls however many clients there are",
		func(r *runner) {
			r.test("./transports/lite", "TestACallIsTwoMessages", "TestOneGoroutinePollsHoweverManyClients")
		}},
	{"L11", "the head of a ring is told at most once a quarter of it, and no sender waits for it", func(r *runner) {
		r.test("./transports/lite", "TestACallIsTwoMessages")
		r.test("./transports/lite/ring", "TestARecordNeverCrossesTheEndAndNeverStalls")
	}},
	{"L12", "calls: near the best of their kind, and much faster than over TCP", showCalls},
	{"L13", "adaptive waiting: CPU high while answers come at once, low behind that; a wake-up more latency",
		showThinking},
	{"L14", "memory grows by a ring a client, far less than receives of the longest message", showMemory},
	{"L15", "memset, memcpy and memmove are exact, also over nodes, and the caller moves no data", func(r *runner) {
		r.conform("mem/set-and-move")
		r.test("./transports/lite", "TestMemoryCallsAreExact", "TestTheCallerOfACopyMovesNoData")
	}},
	{"L16", "atomics count exactly, locks exclude in order of arrival, a free one costs about one atomic; barriers",
		showSync},
	{"L17", "SW-Pri keeps high near what it is alone, and in total ahead of HW-Sep", showClasses},
	{"L18", "four applications agree with one machine; 20 to 50 of their lines use LITE", showApplications},
}
