package wiretest

import (
	"bytes"
	"testing"

	"github.com/rdmaperf/rdmaperf/softstack/ddp"
	"github.com/rdmaperf/rdmaperf/softstack/mpa"
	"github.com/rdmaperf/rdmaperf/softstack/rdmap"
)

func payload(n int) []byte { return make([]byte, n) }

var (
	readReq = rdmap.ReadRequest{SinkSTag: 0xaabbccdd, SinkTO: 0x2000, Size: 16, SrcSTag: 0x11223344, SrcTO: 0x1000}
	count16 = []byte{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}
)

// scripts are the vectors again, built by the constructors.
var scripts = map[string][]*Segment{
	"V1":           {Send(1, payload(24))},
	"V4 write":     {Write(0, 0, nil)},
	"V6":           {Write(1, 0, nil)},
	"V7":           {ReadRequest(1, rdmap.ReadRequest{SrcSTag: 1})},
	"V8":           {Send(1, []byte("hello"))},
	"V9":           {Send(1, nil)},
	"V10":          {Write(0x11223344, 0x1000, []byte("hello"))},
	"V11":          {ReadRequest(1, readReq)},
	"V12":          {ReadResponse(0xaabbccdd, 0x2000, count16)},
	"V13":          {Send(2, []byte("x")).Op(rdmap.OpSendSEInv).Inv(0x11223300)},
	"V14":          {TerminateCode(rdmap.TermMPACRC)},
	"V14 siw":      {Terminate(2, 2, 0, 0)},
	"V4 terminate": {TerminateCode(rdmap.TermLocal)},
	"V15":          {Send(1, payload(464)), Send(2, payload(24))},
	"V16":          {quoting(rdmap.TermTaggedSTag, Write(0x11223344, 0x1000, []byte("hello")))},
	"V17":          {quoting(rdmap.TermProtAccess, ReadRequest(1, readReq))},
	"V18": {AtomicRequest(1, rdmap.AtomicRequest{Op: rdmap.AtomicFetchAdd, ID: 1, STag: 0x11223344, TO: 0x1000,
		Data: 7})},
	"V19": {AtomicRequest(2, rdmap.CmpSwap(2, 0x11223344, 0x1000, 7, 0xdeadbeef))},
	"V20": {AtomicResponse(1, 1, 0)},
	"V21": {Immediate(1, 0x0102030405060708)},
	"V22": {Send(1, payload(480)), Send(2, payload(24))},
	"V23": {Send(1, payload(484)), Send(2, payload(4))},
	"V24": {Send(1, []byte("hello")).BadCRC()},
}

// quoting is a Terminate for a segment, with the headers that the reason wants.
func quoting(code rdmap.TermCode, s *Segment) *Segment {
	u := s.ULPDU()
	n := ddp.HeaderLen(u[0])
	t := rdmap.NewTerminate(code, len(u), u[:n], u[n:])
	return Terminate(rdmap.AppendTerminate(nil, &t)...)
}

func TestScriptsEncodeToTheVectors(t *testing.T) {
	seen := 0
	for _, v := range Vectors() {
		segs := scripts[v.Name]
		if segs == nil {
			continue
		}
		seen++
		e := Encoder{CRC: true, Markers: v.Markers}
		var got []byte
		for _, s := range segs {
			got = e.Append(got, s)
		}
		if !bytes.Equal(got, v.Bytes) {
			t.Errorf("%s: encoded\n%x, want\n%x", v.Name, got, v.Bytes)
		}
	}
	if seen != len(scripts) {
		t.Errorf("%d vectors compared, want %d", seen, len(scripts))
	}
}

// A receiver takes every segment of the vectors, and the fields that it reads, written again, are the same octets.
func TestVectorsAreDecoded(t *testing.T) {
	for _, v := range Vectors() {
		if v.Startup || v.Name == "V24" {
			continue
		}
		d, got := mpa.NewDeframer(v.Markers, true), 0
		for b := v.Bytes; len(b) > 0; {
			b = b[d.Feed(b):]
			for u, ok, err := d.Next(); ok || err != nil; u, ok, err = d.Next() {
				if err != nil {
					t.Fatalf("%s: %v", v.Name, err)
				}
				got++
				if again := recoded(t, v.Name, u); !bytes.Equal(again, u) && v.Name != "V14 siw" {
					t.Errorf("%s: %x is read and written as %x", v.Name, u, again)
				}
			}
		}
		if want := max(len(scripts[v.Name]), 1); got != want {
			t.Errorf("%s: %d segments, want %d", v.Name, got, want)
		}
	}
}

// recoded is a ULPDU whose header and message were read field by field and written again.
func recoded(t *testing.T, name string, u []byte) []byte {
	t.Helper()
	n, qn := ddp.HeaderLen(u[0]), uint32(0)
	out, body := make([]byte, n), append([]byte(nil), u[n:]...)
	op, ok := rdmap.ParseControl(u[1])
	if ddp.IsTagged(u[0]) {
		h := ddp.GetTagged(u)
		ddp.PutTagged(out, &h)
	} else {
		h := ddp.GetUntagged(u)
		qn = h.QN
		ddp.PutUntagged(out, &h)
	}
	if code := rdmap.CheckInbound(op, ddp.IsTagged(u[0]), qn, true); !ok || !ddp.VersionOK(u[0]) || code != 0 {
		t.Fatalf("%s: %x is refused: %v", name, u, code)
	}
	switch op {
	case rdmap.OpReadReq:
		r := rdmap.GetReadRequest(body)
		rdmap.PutReadRequest(body, &r)
	case rdmap.OpAtomicReq:
		r := rdmap.GetAtomicRequest(body)
		rdmap.PutAtomicRequest(body, &r)
	case rdmap.OpAtomicResp:
		r := rdmap.GetAtomicResponse(body)
		rdmap.PutAtomicResponse(body, &r)
	case rdmap.OpImmediate:
		rdmap.PutImmediate(body, rdmap.GetImmediate(body))
	case rdmap.OpTerminate:
		term, layout, err := rdmap.ParseTerminate(body)
		if err != nil || (layout == rdmap.LayoutRFC) == (name == "V14 siw") {
			t.Fatalf("%s: %v, layout %v", name, err, layout)
		}
		body = rdmap.AppendTerminate(nil, &term)
	}
	return append(out, body...)
}

func TestReaderFindsNoFaultInTheVectors(t *testing.T) {
	for _, v := range Vectors() {
		if v.Startup {
			continue
		}
		for _, step := range []int{1, 7, len(v.Bytes)} {
			r := Reader{CRC: true, Markers: v.Markers}
			var ulpdus [][]byte
			for b := v.Bytes; len(b) > 0; {
				n := min(step, len(b))
				r.Feed(b[:n])
				b = b[n:]
				for f, ok := r.Next(); ok; f, ok = r.Next() {
					if bad := len(f.Faults) > 0; bad != (v.Name == "V24") {
						t.Errorf("%s: %v: faults %v", v.Name, f, f.Faults)
					}
					ulpdus = append(ulpdus, f.ULPDU)
				}
			}
			if r.Partial() != 0 || len(ulpdus) == 0 {
				t.Errorf("%s in steps of %d: %d FPDUs, %d octets left", v.Name, step, len(ulpdus), r.Partial())
			}
			for i, s := range scripts[v.Name] {
				if !bytes.Equal(ulpdus[i], s.ULPDU()) {
					t.Errorf("%s: ulpdu %d = %x, want %x", v.Name, i, ulpdus[i], s.ULPDU())
				}
			}
		}
	}
}

// The marker writer and the deframer of package mpa and the code here are two
// readings of RFC 5044 §4.3; they have to agree on every alignment.
func TestMarkersAgreeWithPackageMPA(t *testing.T) {
	for first := 0; first < 520; first++ {
		e := Encoder{CRC: true, Markers: true}
		var w mpa.MarkerWriter
		var got, want []byte
		for i, n := range []int{first, 600, 3} {
			s := Send(uint32(i+1), payload(n))
			got = e.Append(got, s)
			want = w.Append(want, s.ULPDU(), true)
		}
		if !bytes.Equal(got, want) {
			t.Fatalf("first payload of %d octets: streams differ", first)
		}
		r := Reader{CRC: true, Markers: true}
		r.Feed(want)
		for range 3 {
			if f, ok := r.Next(); !ok || len(f.Faults) > 0 {
				t.Fatalf("first payload of %d octets: %v %v", first, ok, f)
			}
		}
	}
}

func TestOverridesChangeOneThing(t *testing.T) {
	right := func() *Segment { return Send(1, []byte("hello")) }
	crcOf := func(b []byte) []byte {
		var sum [4]byte
		mpa.PutCRC(sum[:], mpa.CRC(0, b))
		return append(b, sum[:]...)
	}
	for name, c := range map[string]struct {
		s    *Segment
		want []byte
	}{
		"pad":    {right().Pad(1, 2, 3), crcOf(unhex("00174143 00000000 00000000 00000001 00000000 68656c6c 6f010203"))},
		"no pad": {right().Pad(), crcOf(unhex("00174143 00000000 00000000 00000001 00000000 68656c6c 6f"))},
		"cut":    {right().Cut(5), unhex("0017414300")},
		"dv":     {right().DV(2), crcOf(unhex("00174243 00000000 00000000 00000001 00000000 68656c6c 6f000000"))},
		"rv":     {right().RV(3), crcOf(unhex("001741c3 00000000 00000000 00000001 00000000 68656c6c 6f000000"))},
		"more, mo": {right().More().MO(7),
			crcOf(unhex("00170143 00000000 00000000 00000001 00000007 68656c6c 6f000000"))},
		"qn, msn": {right().QN(3).MSN(9),
			crcOf(unhex("00174143 00000000 00000003 00000009 00000000 68656c6c 6f000000"))},
		"short": {right().Shorten(3), crcOf(unhex("00034143 00000000"))},
		"crc": {right().CRC(func([]byte) [4]byte { return [4]byte{1, 2, 3, 4} }),
			unhex("00174143 00000000 00000000 00000001 00000000 68656c6c 6f000000 01020304")},
		"tagged": {Write(0x0a0b0c0d, 0x1122, []byte("hi")).Flip(0, 0x80),
			crcOf(unhex("00104140 0a0b0c0d 00000000 00001122 6869 0000"))},
	} {
		e := Encoder{CRC: true}
		if got := e.Append(nil, c.s); !bytes.Equal(got, c.want) {
			t.Errorf("%s: %x, want %x", name, got, c.want)
		}
	}
}
