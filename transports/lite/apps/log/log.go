// Package log is a distributed log in named memory: any node appends, without the node where the log lies.
//
// An append takes room by one atomic and writes its record there, in units of 64 bytes that begin with a header (mark,
// length, position, checksum): a record is there whole or not at all. Readers pass over the units of a node that died
// in between. The log does not wrap, and dies with a node that it lies on.
package log

import (
	"embed"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"

	"github.com/rdmaperf/rdmaperf/transports/lite"
)

// Source is this package, to count its lines.
//
//go:embed *.go
var Source embed.FS

const (
	unit = 64
	mark = 0x676f4c4c // "LLog"
	head = 4 + 4 + 8 + 4
	most = 1 << 20 // bytes of the longest record that a reader accepts
)

// ErrFull: the log has no room for the record.
var ErrFull = errors.New("log is full")

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Log is a log as one client uses it, and belongs to the goroutine of that.
type Log struct {
	c    *lite.Client
	data lite.Handle
	tail lite.Handle // units taken
	size uint64      // units
	buf  []byte
}

// Create makes a log of size bytes, whose chunks lie on the given nodes, and the counter of its tail on the first.
func Create(c *lite.Client, name string, size uint64, nodes []int) error {
	access := lite.PermRead | lite.PermWrite
	if _, err := c.Malloc(lite.RegionConfig{Name: name, Size: size &^ (unit - 1), Nodes: nodes,
		Open: access}); err != nil {
		return err
	}
	_, err := c.Malloc(lite.RegionConfig{Name: name + ".tail", Size: 8, Nodes: nodes[:1],
		Open: access | lite.PermAtomic})
	return err
}

// Open finds a log.
func Open(c *lite.Client, name string) (l *Log, err error) {
	l = &Log{c: c}
	if l.data, err = c.Map(name, lite.PermRead|lite.PermWrite, ""); err != nil {
		return nil, err
	}
	if l.tail, err = c.Map(name+".tail", lite.PermRead|lite.PermAtomic, ""); err != nil {
		return nil, err
	}
	n, err := c.Size(l.data)
	l.size = n / unit
	return l, err
}

func units(n int) uint64 { return uint64(head+n+unit-1) / unit }

// Append adds a record and returns its position. Where completions are acknowledged, every reader finds it then.
func (l *Log) Append(record []byte) (pos uint64, err error) {
	if len(record) > most {
		return 0, fmt.Errorf("append %d bytes: the longest record has %d", len(record), most)
	}
	n := units(len(record))
	if pos, err = l.c.FetchAdd(l.tail, 0, n); err != nil {
		return 0, err
	}
	if pos > l.size || n > l.size-pos {
		return 0, ErrFull
	}
	l.buf = append(l.buf[:0], make([]byte, head)...)
	l.buf = append(l.buf, record...)
	binary.LittleEndian.PutUint32(l.buf, mark)
	binary.LittleEndian.PutUint32(l.buf[4:], uint32(len(record)))
	binary.LittleEndian.PutUint64(l.buf[8:], pos)
	binary.LittleEndian.PutUint32(l.buf[16:], sum(l.buf))
	return pos, l.c.Write(l.data, pos*unit, l.buf)
}

func sum(b []byte) uint32 {
	return crc32.Update(crc32.Checksum(b[:16], castagnoli), castagnoli, b[head:])
}

// Scan calls f with every record from position from to the present tail, in order, and returns where to go on. Units
// that are no record, or not yet, are passed over. A record is the caller's until the next one.
func (l *Log) Scan(from uint64, f func(pos uint64, record []byte) error) (next uint64, err error) {
	var word [8]byte
	if err := l.c.Read(l.tail, 0, word[:]); err != nil {
		return from, err
	}
	tail := min(binary.NativeEndian.Uint64(word[:]), l.size)
	const window = 4096 // units read at once
	var b []byte
	base, end := from, from // units in b
	for at := from; at < tail; {
		if at >= end || end < tail && end-at < units(most) && at > base {
			base, end = at, min(at+max(window, units(most)), tail)
			b = append(b[:0], make([]byte, (end-base)*unit)...)
			if err := l.c.Read(l.data, base*unit, b); err != nil {
				return at, err
			}
		}
		record, n := parse(b[(at-base)*unit:], at)
		if n == 0 {
			at++
			continue
		}
		if err := f(at, record); err != nil {
			return at, err
		}
		at += n
	}
	return tail, nil
}

// parse takes the record at the beginning of b, whose position is at; n is its units, 0 when there is none.
func parse(b []byte, at uint64) (record []byte, n uint64) {
	if len(b) < head || binary.LittleEndian.Uint32(b) != mark || binary.LittleEndian.Uint64(b[8:]) != at {
		return nil, 0
	}
	size := binary.LittleEndian.Uint32(b[4:])
	if size > most || uint64(size) > uint64(len(b)-head) {
		return nil, 0
	}
	b = b[:head+size]
	if binary.LittleEndian.Uint32(b[16:]) != sum(b) {
		return nil, 0
	}
	return b[head:], units(int(size))
}
