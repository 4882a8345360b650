package main

import "strings"

// kind is a kind of work, and the functions that are known to do it.
type kind struct {
	name  string
	parts []string // of a function's full name
}

// The names of kinds that rules below give apart.
const (
	send      = "system calls: send"
	receive   = "system calls: receive"
	sleep     = "system calls: sleep and wake"
	copying   = "copies and clearing in user space"
	checksum  = "iWARP's checksums"
	flow      = "HTTP/2: flow control"
	framing   = "HTTP/2: frames, streams, headers"
	fusedWork = "fused frames and streams"
	soft      = "iWARP, ring and polling"
	memory    = "memory: allocation and collector"
	scheduler = "goroutines: scheduling and locks"
	compare   = "comparing the data"
	other     = "other"
)

// kinds are the lines of the table. The first that knows a function has it.
var kinds = []kind{
	{name: send},
	{name: receive},
	{name: sleep, parts: []string{"runtime.futex", "runtime.epoll", "runtime.usleep", "runtime.netpoll",
		"runtime.osyield", "runtime/syscall/linux.EpollWait"}},
	{copying, []string{"runtime.memmove", "runtime.memclr", "runtime.typedmemmove"}},
	{checksum, []string{"mpa.foldCRC", "mpa.CRC", "mpa.updateCRC", "hash/crc32."}},
	{flow, []string{"writeQuota", "inFlow", "outFlow", "windowUpdate", "WindowUpdate", "bdpEstimator", "FlowControl",
		"adjustWindow", "updateWindow", "flowcontrol"}},
	{framing, []string{"google.golang.org/grpc", "golang.org/x/net/http2"}},
	{fusedWork, []string{"grpcrdma/fused."}},
	{soft, []string{"rdmaperf/grpcrdma.", "grpcrdma/bpev.", "softstack/"}},
	{memory, []string{"runtime.mallocgc", "runtime.gcBgMarkWorker", "runtime.gcDrain", "runtime.bgsweep",
		"runtime.bgscavenge", "runtime.gcAssist", "runtime.newobject", "runtime.makeslice", "runtime.growslice",
		"runtime.gcStart", "runtime.scanobject", "runtime.wbBufFlush", "runtime.sysUnused"}},
	{scheduler, []string{"runtime.mcall", "runtime.schedule", "runtime.park", "runtime.goschedImpl",
		"runtime.findRunnable", "runtime.lock", "runtime.unlock", "runtime.sellock", "runtime.selectgo", "runtime.chan",
		"sync.", "runtime.mstart", "runtime.gopark", "runtime.goready", "runtime.ready", "runtime.sema",
		"runtime.timer", "runtime.sysmon"}},
	{compare, []string{"payload.Differs", "memeqbody", "bytes.Equal", "rpc.(*rpcCaller).Check", "rpc.(*echo)"}},
	{name: other},
}

// kindOf is the kind of work of a stack, innermost function first. A system call is
// known by who makes it.
func kindOf(stack []string) string {
	if strings.Contains(stack[0], "Syscall6") || strings.Contains(stack[0], "syscall.") {
		for _, f := range stack {
			switch {
			case has(f, "stream.(*socket).Send", "syscall.write", "net.(*conn).Write", "writev"):
				return send
			case has(f, "stream.(*socket).Recv", "syscall.read", "net.(*conn).Read"):
				return receive
			case has(f, "bpev.yieldThread", "stream.(*epoll)", "runtime.", "poll.(*FD)"):
				return sleep
			}
		}
		return sleep
	}
	for _, f := range stack {
		for _, k := range kinds {
			if has(f, k.parts...) {
				return k.name
			}
		}
	}
	return other
}

func has(s string, parts ...string) bool {
	for _, p := range parts {
		if strings.Contains(s, p) {
			return true
		}
	}
	return false
}
