package ddp

import (
	"testing"

	"pgregory.net/rapid"
)

// arrival is one segment and what Check must say about it.
type arrival struct {
	msn, mo uint32
	payload int
	last    bool
	buf     uint32
	noBuf   bool
	first   bool
	code    ErrorCode
}

func TestRecvQueue(t *testing.T) {
	const top = 1<<32 - 1
	for _, c := range []struct {
		name     string
		firstMSN uint32
		segments []arrival
	}{
		{"messages of one segment", 1, []arrival{
			{msn: 1, payload: 5, last: true, buf: 5, first: true},
			{msn: 2, payload: 0, last: true, buf: 0, first: true},
			{msn: 3, payload: 1, last: true, buf: 9, first: true},
		}},
		{"a message of three segments", 1, []arrival{
			{msn: 1, mo: 0, payload: 1482, buf: 4000, first: true},
			{msn: 1, mo: 1482, payload: 1482, buf: 4000},
			{msn: 1, mo: 2964, payload: 1036, last: true, buf: 4000},
			{msn: 2, payload: 1, last: true, buf: 1, first: true},
		}},
		{"empty segments inside a message", 1, []arrival{
			{msn: 1, buf: 10, first: true},
			{msn: 1, buf: 10},
			{msn: 1, payload: 10, buf: 10},
			{msn: 1, mo: 10, last: true, buf: 10},
		}},
		{"msn wraps to 0", top, []arrival{
			{msn: top, payload: 1, last: true, buf: 1, first: true},
			{msn: 0, payload: 1, last: true, buf: 1, first: true},
			{msn: 1, payload: 1, last: true, buf: 1, first: true},
		}},
		{"largest message", 1, []arrival{
			{msn: 1, mo: 0, payload: top - 1, buf: top, first: true},
			{msn: 1, mo: top - 1, payload: 1, last: true, buf: top},
		}},
		{"octet 2^32 of a message", 1, []arrival{
			{msn: 1, mo: 0, payload: top, buf: top, first: true},
			{msn: 1, mo: top, payload: 1, last: true, buf: top, code: ErrUntaggedTooLong},
		}},
		{"W-39 msn skips one", 1, []arrival{{msn: 2, last: true, buf: 9, code: ErrUntaggedMSN}}},
		{"W-39 msn skips 2^31", 1, []arrival{{msn: 1 + 1<<31, last: true, buf: 9, code: ErrUntaggedMSN}}},
		{"W-40 msn 0 first", 1, []arrival{{msn: 0, last: true, buf: 9, code: ErrUntaggedMSN}}},
		{"W-40 replay", 1, []arrival{
			{msn: 1, payload: 1, last: true, buf: 1, first: true},
			{msn: 1, payload: 1, last: true, buf: 1, code: ErrUntaggedMSN},
		}},
		{"W-41 first segment not at 0", 1, []arrival{{msn: 1, mo: 1, last: true, buf: 9, code: ErrUntaggedMO}}},
		{"W-41 gap", 1, []arrival{
			{msn: 1, payload: 10, buf: 99, first: true},
			{msn: 1, mo: 11, payload: 1, last: true, buf: 99, code: ErrUntaggedMO},
		}},
		{"W-41 overlap", 1, []arrival{
			{msn: 1, payload: 10, buf: 99, first: true},
			{msn: 1, mo: 9, payload: 1, last: true, buf: 99, code: ErrUntaggedMO},
		}},
		{"W-42 one segment too long", 1,
			[]arrival{{msn: 1, payload: 10, last: true, buf: 9, code: ErrUntaggedTooLong}}},
		{"W-42 second segment too long", 1, []arrival{
			{msn: 1, payload: 8, buf: 9, first: true},
			{msn: 1, mo: 8, payload: 2, last: true, buf: 9, code: ErrUntaggedTooLong},
		}},
		{"W-43 no buffer", 1, []arrival{{msn: 1, last: true, noBuf: true, code: ErrUntaggedNoBuffer}}},
		{"W-49 next message before the last segment", 1, []arrival{
			{msn: 1, payload: 10, buf: 99, first: true},
			{msn: 2, payload: 10, last: true, buf: 99, code: ErrUntaggedMSN},
		}},
		{"W-49 message starts over", 1, []arrival{
			{msn: 1, payload: 10, buf: 99, first: true},
			{msn: 1, payload: 10, last: true, buf: 99, code: ErrUntaggedMO},
		}},
		{"order: msn before buffer", 1, []arrival{{msn: 2, mo: 7, payload: 9, noBuf: true, code: ErrUntaggedMSN}}},
		{"order: buffer before mo", 1, []arrival{{msn: 1, mo: 7, payload: 9, noBuf: true, code: ErrUntaggedNoBuffer}}},
		{"order: mo before length", 1, []arrival{{msn: 1, mo: 7, payload: 9, buf: 1, code: ErrUntaggedMO}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			q := NewRecvQueue(QNSend, c.firstMSN)
			for i, a := range c.segments {
				h := Untagged{Last: a.last, MSN: a.msn, MO: a.mo}
				before := q
				first, code := q.Check(&h, a.payload, a.buf, !a.noBuf)
				if first != a.first || code != a.code {
					t.Fatalf("segment %d: first %t, %v, want first %t, %v", i, first, code, a.first, a.code)
				}
				if code != 0 {
					if q != before {
						t.Errorf("segment %d: refused, and the queue moved from %+v to %+v", i, before, q)
					}
					continue
				}
				if q.Open() == a.last {
					t.Errorf("segment %d: open %t after last %t", i, q.Open(), a.last)
				}
			}
		})
	}
}

func TestRecvQueueRefusesAnotherQueue(t *testing.T) {
	for _, qn := range []uint32{QNReadReq, QNTerminate, QNAtomicResp, 4, 1<<32 - 1} {
		q := NewRecvQueue(QNSend, 1)
		if _, code := q.Check(&Untagged{Last: true, QN: qn, MSN: 1}, 0, 0, true); code != ErrUntaggedQN {
			t.Errorf("queue %d on queue 0: %v", qn, code)
		}
	}
}

// A sender's segments are exactly what the queue accepts, in that order and no other.
func TestSegmentsPassTheQueueProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		msn := rapid.Uint32().Draw(t, "first msn")
		q := NewRecvQueue(QNSend, msn)
		for range rapid.IntRange(1, 4).Draw(t, "messages") {
			size := rapid.Uint32Range(0, 5000).Draw(t, "size")
			mulpdu := rapid.IntRange(19, 1500).Draw(t, "mulpdu")
			var sum uint32
			for done := false; !done; {
				n := min(size-sum, uint32(mulpdu-UntaggedLen)) // a message of nothing is one segment (RFC 5041 §5.2)
				done = sum+n == size
				h := Untagged{Last: done, MSN: msn, MO: sum}
				bent := h
				if rapid.Bool().Draw(t, "bend msn") {
					bent.MSN += rapid.Uint32Range(1, 1<<32-1).Draw(t, "by")
				} else {
					bent.MO += rapid.Uint32Range(1, 1<<32-1).Draw(t, "by")
				}
				before := q
				if _, code := q.Check(&bent, int(n), size, true); code == 0 || q != before {
					t.Fatalf("bent segment %+v: %v", bent, code)
				}
				if q.Offset() != uint64(sum) || q.MSN() != msn {
					t.Fatalf("queue at msn %d offset %d, sender at %d, %d", q.MSN(), q.Offset(), msn, sum)
				}
				first, code := q.Check(&h, int(n), size, true)
				if code != 0 || first != (sum == 0) {
					t.Fatalf("segment %+v: first %t, %v", h, first, code)
				}
				sum += n
			}
			if sum != size || q.Open() {
				t.Fatalf("%d of %d octets, open %t", sum, size, q.Open())
			}
			msn++
		}
	})
}

func FuzzRecvQueue(f *testing.F) {
	f.Add(uint32(1), []byte{0x80, 0, 0, 5, 9})
	f.Add(uint32(1<<32-1), []byte{0, 0, 0, 5, 9, 0x80, 0, 5, 1, 9})
	f.Fuzz(func(t *testing.T, msn uint32, script []byte) {
		q := NewRecvQueue(QNSend, msn)
		var got uint64 // octets of the open message, counted here
		for ; len(script) >= 5; script = script[5:] {
			h := Untagged{Last: script[0]&0x80 != 0, MSN: q.MSN() + uint32(script[1]), MO: uint32(script[2])}
			n, buf := int(script[3]), uint32(script[4])
			_, code := q.Check(&h, n, buf, script[0]&1 == 0)
			if code != 0 {
				continue
			}
			if h.MSN != msn || uint64(h.MO) != got || got+uint64(n) > uint64(buf) {
				t.Fatalf("accepted %+v with %d octets at %d of %d", h, n, got, buf)
			}
			got += uint64(n)
			if h.Last {
				got = 0
				msn++
			}
		}
	})
}

func TestCheckBounds(t *testing.T) {
	const top = 1<<64 - 1
	for _, c := range []struct {
		name         string
		to           uint64
		n            int
		base, length uint64
		want         ErrorCode
	}{
		{"whole buffer", 0x1000, 0x100, 0x1000, 0x100, 0},
		{"last octet", 0x10ff, 1, 0x1000, 0x100, 0},
		{"W-45 before the base", 0xfff, 1, 0x1000, 0x100, ErrTaggedBounds},
		{"W-45 last octet + 1", 0x1100, 1, 0x1000, 0x100, ErrTaggedBounds},
		{"W-45 one octet too long", 0x1000, 0x101, 0x1000, 0x100, ErrTaggedBounds},
		{"W-45 far beyond", 1 << 63, 1, 0x1000, 0x100, ErrTaggedBounds},
		{"W-47 wraps", top, 2, 0, top, ErrTaggedWrap},
		{"W-47 sum is 2^64", top, 1, 0, top, ErrTaggedWrap},
		{"just below", top - 1, 1, 0, top, 0},
		{"wrap beats bounds", top - 3, 8, 0x1000, 0x100, ErrTaggedWrap},
		{"W-48 zero length anywhere", top, 0, 0x1000, 0x100, 0},
		{"empty buffer", 0x1000, 1, 0x1000, 0, ErrTaggedBounds},
		{"empty buffer, nothing", 0x1000, 0, 0x1000, 0, 0},
	} {
		if got := CheckBounds(c.to, c.n, c.base, c.length); got != c.want {
			t.Errorf("%s: CheckBounds(%#x, %d, %#x, %#x) = %v, want %v", c.name, c.to, c.n, c.base, c.length, got,
				c.want)
		}
	}
}

func TestCheckBoundsProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		base := rapid.Uint64Range(0, 1<<20).Draw(t, "base")
		length := rapid.Uint64Range(0, 1<<12).Draw(t, "length")
		to := rapid.OneOf(rapid.Uint64Range(base-min(base, 8), base+length+8), rapid.Uint64()).Draw(t, "to")
		n := rapid.IntRange(0, 1<<13).Draw(t, "n")
		inside := n == 0 || to >= base && to <= base+length && to+uint64(n) <= base+length && to+uint64(n) > to
		if got := CheckBounds(to, n, base, length) == 0; got != inside {
			t.Fatalf("accepted %t, inside %t", got, inside)
		}
	})
}
