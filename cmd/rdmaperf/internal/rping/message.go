// Package rping speaks the protocol of librdmacm's rping(1) over any [rdma.Device]. In each ping the client sends an
// [Advert] of its source, which the server reads, and one of its sink, which the server writes; the server answers each
// by a go-ahead of 16 bytes without meaning. A disconnect between two pings is the normal end.
// Each connection has its own protection domain, CQ, QP and registrations. A client grants read of the source and write
// of the sink, a server nothing. The Device stays the caller's.
// Other than rping(1), the server always goes on and serves several clients, it echoes all bytes and not only those
// before a NUL, and every wait has a deadline. A ping is at most 65535 bytes.
package rping

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// AdvertLen is the size in bytes of every message of the protocol.
const AdvertLen = 16

// Advert names a registered buffer of its sender (struct rping_rdma_info of
// librdmacm/examples/rping.c). All fields are big-endian on the wire:
//
//	 0                   8          12         16
//	+-------------------+----------+----------+
//	| address           | rkey     | size     |
//	+-------------------+----------+----------+
type Advert struct {
	Addr uint64 // RDMA address (iWARP: Tagged Offset)
	RKey uint32 // remote key (iWARP: STag)
	Size uint32 // bytes
}

func (a Advert) put(b []byte) {
	binary.BigEndian.PutUint64(b[0:8], a.Addr)
	binary.BigEndian.PutUint32(b[8:12], a.RKey)
	binary.BigEndian.PutUint32(b[12:16], a.Size)
}

// ParseAdvert reads a message; any length but AdvertLen is malformed, also of a go-ahead.
func ParseAdvert(b []byte) (Advert, error) {
	if len(b) != AdvertLen {
		return Advert{}, &MalformedError{fmt.Sprintf("message of %d bytes, want %d", len(b), AdvertLen)}
	}
	return Advert{
		Addr: binary.BigEndian.Uint64(b[0:8]),
		RKey: binary.BigEndian.Uint32(b[8:12]),
		Size: binary.BigEndian.Uint32(b[12:16]),
	}, nil
}

// Sizes of a ping in bytes. The least one holds the longest text in front of the pattern, as rping demands of its -S.
const (
	MinSize     = 26
	MaxSize     = 64<<10 - 1
	DefaultSize = 64
)

const (
	firstChar = 'A'
	lastChar  = 'z'
	numChars  = lastChar - firstChar + 1
)

// Fill writes the content of ping number n into buf, MinSize bytes or more, and allocates nothing.
func Fill(buf []byte, n int) {
	text := append(buf[:0], "rdma-ping-"...)
	text = strconv.AppendInt(text, int64(n), 10)
	text = append(text, ": "...)
	c := byte(firstChar + n%numChars)
	for i := len(text); i < len(buf); i++ {
		buf[i] = c
		if c++; c > lastChar {
			c = firstChar
		}
	}
	buf[len(buf)-1] = 0
}

// ErrPeerGone: the connection ended in the middle of a ping.
var ErrPeerGone = errors.New("the peer ended the connection in the middle of a ping")

var errEnded = errors.New("connection ended")

// endedError: posted work was flushed because the connection ended. The vendor error is there on an orderly end, too.
type endedError struct{ vendorErr uint32 }

func (e *endedError) Error() string {
	if e.vendorErr == 0 {
		return errEnded.Error()
	}
	return fmt.Sprintf("%v (vendor error %#x)", errEnded, e.vendorErr)
}

func (e *endedError) Is(target error) bool { return target == errEnded }

// MalformedError is a peer that breaks rping's protocol.
type MalformedError struct{ What string }

func (e *MalformedError) Error() string { return "malformed: " + e.What }

func (e *MalformedError) Is(target error) bool { return target == rdma.ErrProtocol }

// MismatchError is data that came back changed.
type MismatchError struct {
	Ping      int
	Offset    int // of the first wrong byte
	Got, Want byte
	Wrong     int // number of wrong bytes
	Size      int
}

func (e *MismatchError) Error() string {
	return fmt.Sprintf("data mismatch: ping %d, offset %d of %d: got %#02x, want %#02x (%d wrong bytes)",
		e.Ping, e.Offset, e.Size, e.Got, e.Want, e.Wrong)
}

// TimeoutError is a peer that did not do its next step in time; errors.Is rdma.ErrUnreachable.
type TimeoutError struct {
	Step  string
	After time.Duration
}

func (e *TimeoutError) Error() string {
	return fmt.Sprintf("wait for %s: nothing within %v", e.Step, e.After)
}

func (e *TimeoutError) Is(target error) bool { return target == rdma.ErrUnreachable }
