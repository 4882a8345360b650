package shm

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
	"time"
)

// Family is what both sides of a kind of link agree on.
type Family struct {
	// Name is in the names of its sockets. Magic is 8 octets, and changes when the layout of the memory does.
	Name, Magic string
	// MinFrames and MaxFrames bound a hello; the number is a power of two.
	MinFrames, MaxFrames int
	// Check is what else a hello must keep to; nil admits only the option 0.
	Check func(Hello) error
	// Size is the memory in octets that a hello asks for.
	Size func(Hello) int
}

// Hello is what the side that dials chooses.
type Hello struct {
	Frames int    // a direction
	Option uint32 // of the family
}

const (
	magicLen   = 8
	helloLen   = magicLen + 4 + 4
	meetWithin = 2 * time.Second // both sides are on this machine
)

// room is the name of a listener's socket.
func (f *Family) room(port string) string { return "@rdmaperf/" + f.Name + "/" + port }

func (f *Family) put(h Hello) []byte {
	b := make([]byte, helloLen)
	copy(b, f.Magic)
	binary.BigEndian.PutUint32(b[magicLen:], uint32(h.Frames))
	binary.BigEndian.PutUint32(b[magicLen+4:], h.Option)
	return b
}

// parse is what a hello asks for, within the family's bounds.
func (f *Family) parse(b []byte) (Hello, error) {
	if len(b) != helloLen || string(b[:magicLen]) != f.Magic {
		return Hello{}, errors.New("not a hello")
	}
	n, option := binary.BigEndian.Uint32(b[magicLen:]), binary.BigEndian.Uint32(b[magicLen+4:])
	if uint64(n) < uint64(f.MinFrames) || uint64(n) > uint64(f.MaxFrames) || bits.OnesCount32(n) != 1 {
		return Hello{}, fmt.Errorf("ring of %d frames", n)
	}
	h := Hello{int(n), option}
	if f.Check != nil {
		return h, f.Check(h)
	}
	if option != 0 {
		return Hello{}, fmt.Errorf("option %d", option)
	}
	return h, nil
}
