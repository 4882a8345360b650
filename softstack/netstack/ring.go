package netstack

import (
	"errors"
	"sync/atomic"
	"unsafe"
)

// A direction of a link in shared memory is a ring of slots, in order. Single producer,
// single consumer; each index is written by one side and lies on its own cache line:
//
//	0 used, the producer's · 64 taken, the consumer's · 128 asleep, the consumer asks
//	for a bell · 192 dropped, the producer's · 256 slots of a length (4) and a frame
const (
	atUsed    = 0
	atTaken   = 64
	atAsleep  = 128
	atDropped = 192
	atSlots   = 256
	atFrame   = 4
)

// errBroken: the other side wrote what no such ring has.
var errBroken = errors.New("the ring is broken")

// slotSize is the room of a frame of mtu octets.
func slotSize(mtu int) int { return (atFrame + mtu + 63) &^ 63 }

// ringSize is one direction in octets, whole pages.
func ringSize(frames, mtu int) int { return (atSlots + frames*slotSize(mtu) + 4095) &^ 4095 }

// ring is one side of a direction. What the other side writes is checked where it could
// lead out of the memory.
type ring struct {
	mem    []byte
	frames uint32
	mtu    int
	at     uint32 // used of a producer, taken of a consumer
}

func newRing(mem []byte, frames, mtu int) ring {
	return ring{mem: mem, frames: uint32(frames), mtu: mtu}
}

func (r *ring) word(at int) *uint32 { return (*uint32)(unsafe.Pointer(&r.mem[at])) }

func (r *ring) slot(i uint32) []byte {
	size := slotSize(r.mtu)
	return r.mem[atSlots+int(i&(r.frames-1))*size:][:size]
}

// put adds a frame made of parts. ok is false where there is no room, which is counted,
// and where the frame is longer than the MTU.
func (r *ring) put(parts [][]byte) (ok bool, err error) {
	size := 0
	for _, p := range parts {
		size += len(p)
	}
	waiting := r.at - atomic.LoadUint32(r.word(atTaken))
	if waiting > r.frames {
		return false, errBroken
	}
	if waiting == r.frames || size == 0 || size > r.mtu {
		atomic.AddUint64((*uint64)(unsafe.Pointer(&r.mem[atDropped])), 1)
		return false, nil
	}
	s := r.slot(r.at)
	n := atFrame
	for _, p := range parts {
		n += copy(s[n:], p)
	}
	*(*uint32)(unsafe.Pointer(&s[0])) = uint32(size)
	r.at++
	atomic.StoreUint32(r.word(atUsed), r.at)
	return true, nil
}

// next is the oldest frame where it lies, or nil. It stays there until done.
func (r *ring) next() ([]byte, error) {
	waiting := atomic.LoadUint32(r.word(atUsed)) - r.at
	if waiting == 0 {
		return nil, nil
	}
	s := r.slot(r.at)
	size := atomic.LoadUint32((*uint32)(unsafe.Pointer(&s[0])))
	if waiting > r.frames || size == 0 || int64(size) > int64(r.mtu) {
		return nil, errBroken
	}
	return s[atFrame:][:size], nil
}

// done gives the slot of the frame that next showed back.
func (r *ring) done() {
	r.at++
	atomic.StoreUint32(r.word(atTaken), r.at)
}

// pending tells whether a consumer would find something, from any thread.
func (r *ring) pending() bool {
	return atomic.LoadUint32(r.word(atUsed)) != atomic.LoadUint32(r.word(atTaken))
}

// sleep asks the producer for a bell; false when something came meanwhile. Store and
// load do not change places: both are sequentially consistent in Go.
func (r *ring) sleep() bool {
	atomic.StoreUint32(r.word(atAsleep), 1)
	return !r.pending()
}

// wanted tells a producer, once, that the consumer asked for a bell.
func (r *ring) wanted() bool {
	w := r.word(atAsleep)
	return atomic.LoadUint32(w) != 0 && atomic.SwapUint32(w, 0) != 0
}

func (r *ring) dropped() uint64 {
	return atomic.LoadUint64((*uint64)(unsafe.Pointer(&r.mem[atDropped])))
}
