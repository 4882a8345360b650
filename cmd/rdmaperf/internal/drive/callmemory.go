package drive

import (
	"bytes"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"sync"
)

// resident is the process's resident memory in bytes after a collection that gave
// back what nothing uses, so that two readings differ by what is in use. 0 where the
// system does not say.
func resident() int64 {
	debug.FreeOSMemory()
	b, err := os.ReadFile("/proc/self/statm") // proc(5): size, then resident, in pages
	if err != nil {
		return 0
	}
	fields := bytes.Fields(b)
	if len(fields) < 2 {
		return 0
	}
	pages, err := strconv.ParseInt(string(fields[1]), 10, 64)
	if err != nil {
		return 0
	}
	return pages * int64(os.Getpagesize())
}

// callHeap is what the heap of a process that makes or serves calls counts for the
// collector, at least. gRPC allocates for every call, so a window without any
// collection would grow without bound; a process of nothing but this workload would
// collect every 4 MiB, which no server of any use does.
const callHeap = 32 << 20

// heapPad makes the collector run as in a process with callHeap in use, from the
// first point of calls on. It is never touched, so it is not resident.
var heapPad = sync.OnceValue(func() []byte { return make([]byte, callHeap) })

// collectAsUsed begins a window of calls: with no garbage, and with heapPad.
func collectAsUsed() {
	heapPad()
	runtime.GC()
}

// callCollector says so in a result.
const callCollector = "as in a process with 32 MiB in use"
