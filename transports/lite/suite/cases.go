package suite

import (
	"github.com/rdmaperf/rdmaperf/transports/conform"
	"github.com/rdmaperf/rdmaperf/transports/lite"
)

// row is a case and what it does.
type row struct {
	conform.Case
	run func(c *cluster)
}

func must(id, clause, requirement string, run func(c *cluster)) row {
	return row{conform.Case{ID: id, Clause: clause, Requirement: requirement, Level: conform.Must}, run}
}

// table is all cases, in the order in which they run.
var table = []row{
	must("mem/shared-by-name", "SOSP'17 §4.1", "A region that one node made is mapped by name at another; what one writes the other reads.", sharedByName),
	must("mem/password", "lite.h ask_lmr", "Mapping with another password is refused, and gives no handle.", password),
	must("mem/read-only", "lite.h MR_READ_FLAG", "A handle for reading does not write: the bytes stay.", readOnly),
	must("mem/write-only", "lite.h MR_WRITE_FLAG", "A handle for writing does not read.", writeOnly),
	must("mem/atomic-permission", "lite.h MR_ATOMIC_FLAG", "Atomics need their own permission.", atomicPermission),
	must("mem/masters-alone", "SOSP'17 §4.1", "Who is no master neither frees, moves nor grants.", mastersAlone),
	must("mem/grant", "SOSP'17 §4.1", "Who was granted a permission maps without the password, with that permission.", granted),
	must("mem/bounds", "package lite, ErrBounds", "Nothing outside the region is read or written, however the range is put.", bounds),
	must("mem/spans-nodes", "SOSP'17 §4.1", "A range over chunks of several nodes is one operation.", spansNodes),
	must("mem/set-and-move", "SOSP'17 table 1, LT_memset, LT_memmove", "memset and memmove are exact, over nodes and where ranges overlap.", setAndMove),
	must("handle/unmapped", "package lite, ErrDeadHandle", "An unmapped handle, and one that never was, is dead and touches nothing.", unmapped),
	must("handle/freed-while-mapped", "SOSP'17 §4.1", "When a master frees a region, every other handle of it dies, and its name is free.", freed),
	must("handle/moved-while-mapped", "SOSP'17 §4.1", "When a master moves a region, other handles die; who maps anew finds the bytes.", moved),
	must("call/every-length", "lite.h IMM_MAX_SIZE", "Calls of 0 bytes to 2 MiB come back whole, through the end of the ring and back.", everyLength),
	must("call/no-port", "lite.h PORT_NOT_OPENED -103", "A call to a port that nobody opened is answered with -103.", noPort),
	must("call/ring-full", "lite.h PORT_IS_FULL -104", "A ring whose messages nobody releases refuses with -104, and nothing in it is written over.", ringFull),
	must("call/too-big", "lite.h SIZE_TOO_BIG -105", "A request longer than the port takes, and an answer longer than the caller's room, are -105.", tooBig),
	must("call/codes", "lite.h WAIT -101, EMPTY -102, FAIL -106", "The codes that a caller and a server can meet are named errors with LITE's numbers.", codes),
	must("call/deadline", "package lite, ErrTimeout", "A call that nobody answers ends at its deadline, and a late answer hurts nobody.", deadline),
	must("call/no-node", "package lite, ErrNoMember", "A call to a node that is no member is refused at once.", noNode),
	must("lock/excludes", "SOSP'17 §7.2", "At most one owner at a time, and every waiter gets its turn.", excludes),
	must("lock/first-come", "lite_core.c, tickets", "Who waits first is served first.", firstCome),
	must("lock/not-held", "package lite, ErrLockLost", "Unlocking what is not held is refused.", notHeld),
	must("lock/owner-dies", "package lite, Lock", "The lock of an owner that dies passes on to who waits.", ownerDies),
	must("node/death", "package lite, ErrPeerDead", "Calls to a node that dies, and handles of what lay there, fail with their own error in time.", nodeDies),
}

func region(c *cluster, cl Client, name string, size uint64, open lite.Perm, at ...int) lite.Handle {
	h, err := cl.Malloc(lite.RegionConfig{Name: name, Size: size, Nodes: at, Open: open, Password: "sesame"})
	c.ok("malloc of "+name, err)
	return h
}

func pattern(n int, seed byte) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i*7+i>>8) + seed
	}
	return b
}

func read(c *cluster, cl Client, h lite.Handle, off uint64, n int) []byte {
	b := make([]byte, n)
	c.ok("read", cl.Read(h, off, b))
	return b
}
