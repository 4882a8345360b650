package grpcrdma

import (
	"bytes"
	"encoding/binary"
	"errors"
	"testing"

	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// ringOf is a zeroed ring in mapped memory, as the loads need it.
func ringOf(t testing.TB, n int) []byte {
	t.Helper()
	b, err := rdma.Alloc(n)
	must(t, err)
	t.Cleanup(func() { must(t, b.Free()) })
	return b.Bytes()
}

// built is the record that carries payload.
func built(payload []byte, flags uint32) []byte {
	b := make([]byte, recordLen(len(payload)))
	copy(b[headerLen:], payload)
	putRecord(b, len(payload), flags)
	return b
}

func TestRecordsRoundTrip(t *testing.T) {
	ring := ringOf(t, minRing)
	for _, tc := range []struct {
		name    string
		payload []byte
		flags   uint32
		off     int
	}{
		{"one byte", []byte{7}, 0, 0},
		{"fills its unit", make([]byte, unit-overhead), 0, unit},
		{"one more than a unit", make([]byte, unit-overhead+1), 0, unit},
		{"all zero", make([]byte, 1000), 0, 0},
		{"all ones", bytes.Repeat([]byte{0xff}, 1000), 0, 0},
		{"looks like records", bytes.Repeat(built([]byte{1}, 0), 20), 0, 2 * unit},
		{"the whole ring", pattern(payloadIn(minRing), 3), 0, 0},
		{"up to the end of the ring", pattern(payloadIn(minRing-5*unit), 4), 0, 5 * unit},
		{"whose writer had to wait", pattern(100, 5), shortFlag, 0},
		{"an offer", pattern(offerLen, 6), ctlFlag, unit},
		{"on in another ring", nil, ctlFlag, minRing - unit},
		{"the end of the stream", nil, finFlag, minRing - unit},
	} {
		t.Run(tc.name, func(t *testing.T) {
			clear(ring)
			rec := built(tc.payload, tc.flags)
			if len(rec)%unit != 0 || rec[len(rec)-1] == 0 {
				t.Fatalf("record of %d bytes ends in %#x", len(rec), rec[len(rec)-1])
			}
			copy(ring[tc.off:], rec)
			for _, watched := range []bool{true, false} {
				r, ok, err := look(ring, tc.off, watched, uint64(len(rec)))
				if err != nil || !ok {
					t.Fatalf("watched %v: %v, %v", watched, ok, err)
				}
				if r.total != len(rec) || r.flags != tc.flags ||
					!bytes.Equal(ring[tc.off+headerLen:tc.off+headerLen+r.payload], tc.payload) {
					t.Errorf("watched %v: %+v", watched, r)
				}
			}
		})
	}
}

// A device may place the bytes of a write in any order, the last byte last. A
// record must not be believed before that, whatever of its header is there.
func TestTornRecordsAreNotBelieved(t *testing.T) {
	ring := ringOf(t, minRing)
	for _, n := range []int{1, 7, 255, 256, 257, 0x0101, 1000} {
		rec := built(bytes.Repeat([]byte{trailerMark}, n), 0)
		for mask := range 1 << headerLen {
			clear(ring)
			copy(ring, rec[:len(rec)-1])
			for i := range headerLen {
				if mask&(1<<i) == 0 {
					ring[i] = 0
				}
			}
			if r, ok, err := look(ring, 0, true, 0); ok || err != nil {
				t.Fatalf("%d bytes, header bytes %08b: believed %+v, %v", n, mask, r, err)
			}
		}
		ring[len(rec)-1] = trailerMark
		copy(ring, rec[:headerLen])
		if r, ok, err := look(ring, 0, true, 0); !ok || err != nil || r.payload != n {
			t.Fatalf("%d bytes, whole: %+v, %v, %v", n, r, ok, err)
		}
	}
}

func TestMalformedRecordsAreRefused(t *testing.T) {
	header := func(info uint32) []byte {
		b := make([]byte, 2*unit)
		binary.LittleEndian.PutUint32(b, info)
		binary.LittleEndian.PutUint32(b[4:], info^headerMark)
		b[unit-1], b[2*unit-1] = trailerMark, trailerMark
		return b
	}
	bad := built([]byte{1}, 0)
	bad[len(bad)-1] = 1
	for _, tc := range []struct {
		name    string
		bytes   []byte
		off     int
		watched bool
		avail   uint64
	}{
		{"longer than the ring", header(minRing), 0, true, 0},
		{"longer than anything", header(maxPayload), 0, true, 0},
		{"over the end of the ring", header(8), minRing - unit, true, 0},
		{"undefined flag", header(1 << 28), 0, true, 0},
		{"no payload", header(0), 0, true, 0},
		{"end of the stream with payload", header(finFlag | 1), 0, true, 0},
		{"control with payload", header(ctlFlag | 8), 0, true, 0},
		{"two kinds of record", header(ctlFlag | finFlag), 0, true, 0},
		{"wait without payload", header(shortFlag), 0, true, 0},
		{"wrong trailer", bad, 0, true, 0},
		{"no header behind a notice", make([]byte, unit), 0, false, unit},
		{"no trailer behind a notice", header(8)[:unit], 0, false, 2 * unit},
		{"longer than noticed", header(8), 0, false, unit},
	} {
		t.Run(tc.name, func(t *testing.T) {
			ring := ringOf(t, minRing)
			copy(ring[tc.off:], tc.bytes)
			if r, ok, err := look(ring, tc.off, tc.watched, tc.avail); !errors.Is(err, rdma.ErrProtocol) {
				t.Errorf("%+v, %v, %v", r, ok, err)
			}
		})
	}
}

func TestCredit(t *testing.T) {
	cell := ringOf(t, minRing)
	if _, ok := loadCredit(cell); ok {
		t.Error("an empty cell holds credit")
	}
	// Every mixture of two cells at byte granularity is one of them or nothing.
	a, b := credit{0x1020, 3}, credit{0x10f0, 260}
	var ba, bb [cellLen]byte
	putCredit(ba[:], a)
	putCredit(bb[:], b)
	for mask := range 1 << 12 {
		copy(cell, ba[:])
		for i := range 24 {
			if mask&(1<<(i/2)) != 0 {
				cell[i] = bb[i]
			}
		}
		if c, ok := loadCredit(cell); ok && c != a && c != b {
			t.Fatalf("mask %012b: believed %+v", mask, c)
		}
	}
	sent := credit{1 << 20, 10}
	for _, tc := range []struct {
		c    credit
		want bool
	}{
		{credit{1 << 20, 10}, true}, {credit{0, 0}, true}, {credit{16, 1}, true},
		{credit{1<<20 + 16, 10}, false}, {credit{16, 11}, false}, {credit{17, 0}, false}, {credit{1 << 63, 0}, false},
	} {
		if got := tc.c.plausible(sent); got != tc.want {
			t.Errorf("%+v: %v", tc.c, got)
		}
	}
}

func TestGreeting(t *testing.T) {
	good := greeting{notices: true, depth: 128, rkey: 0xfedcba98, addr: 0x7f0000001000, ring: 1 << 20}
	b := append(good.encode(), 0, 0, 0) // devices pad
	got, err := parseGreeting(b)
	if err != nil || got != good {
		t.Fatalf("%+v, %v", got, err)
	}
	for name, bend := range map[string]func([]byte) []byte{
		"short":            func(b []byte) []byte { return b[:greetingLen-1] },
		"empty":            func(b []byte) []byte { return nil },
		"magic":            func(b []byte) []byte { b[0]++; return b },
		"version":          func(b []byte) []byte { b[4]++; return b },
		"flags":            func(b []byte) []byte { b[5] |= 2; return b },
		"ring not a power": func(b []byte) []byte { b[15] = 1; return b },
		"ring too small":   func(b []byte) []byte { clear(b[12:16]); b[14] = 8; return b },
		"ring too large":   func(b []byte) []byte { clear(b[12:16]); b[12] = 0x80; return b },
		"address wraps":    func(b []byte) []byte { copy(b[16:24], "\xff\xff\xff\xff\xff\xff\xff\xf0"); return b },
		"address unusable": func(b []byte) []byte { b[23] = 1; return b },
		"no notices":       func(b []byte) []byte { clear(b[24:28]); return b },
		"too many notices": func(b []byte) []byte { b[24] = 0xff; return b },
	} {
		if g, err := parseGreeting(bend(good.encode())); !errors.Is(err, rdma.ErrProtocol) {
			t.Errorf("%s: %+v, %v", name, g, err)
		}
	}
}

// FuzzRing feeds arbitrary memory to everything that reads what a peer wrote.
func FuzzRing(f *testing.F) {
	var cell [cellLen]byte
	putCredit(cell[:], credit{4096, 7})
	f.Add(built([]byte("hello"), 0), uint32(1), uint16(0))
	f.Add(append(built(pattern(100, 1), 0), built(nil, finFlag)...), uint32(8), uint16(0))
	f.Add(append(built(pattern(offerLen, 1), ctlFlag), built(nil, ctlFlag)...), uint32(3), uint16(0))
	f.Add(cell[:], uint32(noticeCredit), uint16(unit))
	f.Add((&greeting{depth: 1, ring: minRing}).encode(), uint32(1<<30), uint16(minRing-unit))
	buf, err := rdma.Alloc(minRing)
	if err != nil {
		f.Fatal(err)
	}
	ring := buf.Bytes()
	f.Fuzz(func(t *testing.T, data []byte, word uint32, at uint16) {
		clear(ring)
		off := int(at) % minRing &^ (unit - 1)
		copy(ring[off:], data)
		parseGreeting(data)
		sent := credit{8192, 8}
		if c, ok := loadCredit(ring[min(off, minRing-cellLen):]); ok && c.plausible(sent) && c.bytes > sent.bytes {
			t.Fatalf("credit %+v of %+v", c, sent)
		}
		limit, err := noticed(word, 4096, 2048, minRing)
		if limit-2048 > minRing || err == nil && limit <= 4096 {
			t.Fatalf("notice %#x moves the limit to %d: %v", word, limit, err)
		}
		for _, watched := range []bool{true, false} {
			copy(ring[off:], data)
			var c Conn
			c.tx.used.Store(sendDepth) // credit finds no place
			r := &c.rx
			r.watched = watched
			r.use(ring, 0)
			r.pos.Store(uint64(off))
			r.limit.Store(uint64(off) + uint64(word)%minRing)
			var p [100]byte
			for total := 0; total <= minRing; {
				n, err := c.take(p[:])
				if total += n; n == 0 || err != nil {
					break
				}
				if total > minRing {
					t.Fatalf("read %d bytes of a ring of %d", total, minRing)
				}
			}
		}
	})
}
