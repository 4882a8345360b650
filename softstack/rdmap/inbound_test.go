package rdmap

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/rdmaperf/rdmaperf/softstack/ddp"
)

// place is where an opcode belongs; queue -1 is a tagged buffer.
var place = map[Opcode]int{
	OpWrite: -1, OpReadReq: 1, OpReadResp: -1, OpSend: 0, OpSendInv: 0, OpSendSE: 0, OpSendSEInv: 0, OpTerminate: 2,
	OpImmediate: 0, OpImmediateSE: 0, OpAtomicReq: 1, OpAtomicResp: 3,
}

// W-38, W-52, W-53, W-54: every opcode on every queue.
func TestCheckInbound(t *testing.T) {
	queues := []uint32{0, 1, 2, 3, 4, 1<<32 - 1}
	for op := range Opcode(16) {
		for _, rfc7306 := range []bool{false, true} {
			where, known := place[op]
			known = known && (op < OpImmediate || rfc7306)
			want := TermOpcode
			if known && where < 0 {
				want = 0
			}
			for _, qn := range queues { // ignored for a tagged segment
				if got := CheckInbound(op, true, qn, rfc7306); got != want {
					t.Errorf("%v tagged, rfc7306 %t: %v, want %v", op, rfc7306, got, want)
				}
			}
			for _, qn := range queues {
				want := TermOpcode
				switch {
				case qn > 3 || qn == 3 && !rfc7306:
					want = TermUntaggedQN
				case known && where == int(qn):
					want = 0
				}
				if got := CheckInbound(op, false, qn, rfc7306); got != want {
					t.Errorf("%v on queue %d, rfc7306 %t: %v, want %v", op, qn, rfc7306, got, want)
				}
			}
		}
	}
}

// W-37, W-51: reserved bits do not count, RV 10 and 11 are refused.
func TestControl(t *testing.T) {
	for b := range 256 {
		op, ok := ParseControl(byte(b))
		if op != Opcode(b&15) || ok != (b>>6 == 0 || b>>6 == 1) {
			t.Errorf("ParseControl(%02x) = %v, %t", b, op, ok)
		}
	}
	for op := range Opcode(16) {
		if got, want := Control(op), 0x40|byte(op); got != want {
			t.Errorf("Control(%v) = %02x, want %02x", op, got, want)
		}
	}
}

func TestOpcodes(t *testing.T) {
	seen := map[string]bool{}
	for op := range Opcode(17) {
		name := op.String()
		if name == "" || seen[name] {
			t.Errorf("opcode %d: name %q", op, name)
		}
		seen[name] = true
		if _, known := place[op]; known == strings.HasPrefix(name, "opcode") {
			t.Errorf("opcode %d: name %q, assigned %t", op, name, known)
		}
		if got, want := op.Solicited(), strings.Contains(name, "SE"); got != want {
			t.Errorf("%v: solicited %t", op, got)
		}
		if got, want := op.Invalidates(), strings.Contains(name, "Invalidate"); got != want {
			t.Errorf("%v: invalidates %t", op, got)
		}
	}
}

func TestHeadersRoundTripProperty(t *testing.T) {
	u32, u64 := rapid.Uint32(), rapid.Uint64()
	rapid.Check(t, func(t *rapid.T) {
		roundTrip(t, ReadRequestLen, PutReadRequest, GetReadRequest, ReadRequest{u32.Draw(t, "sink"),
			u64.Draw(t, "sink to"), u32.Draw(t, "size"), u32.Draw(t, "src"), u64.Draw(t, "src to")})
		roundTrip(t, AtomicRequestLen, PutAtomicRequest, GetAtomicRequest, AtomicRequest{
			AtomicOp(rapid.Uint8Range(0, 15).Draw(t, "op")), u32.Draw(t, "id"), u32.Draw(t, "stag"), u64.Draw(t, "to"),
			u64.Draw(t, "data"), u64.Draw(t, "mask"), u64.Draw(t, "compare"), u64.Draw(t, "compare mask")})
		roundTrip(t, AtomicResponseLen, PutAtomicResponse, GetAtomicResponse,
			AtomicResponse{u32.Draw(t, "id"), u64.Draw(t, "original")})
		roundTrip(t, ImmediateLen, func(b []byte, v *uint64) { PutImmediate(b, *v) }, GetImmediate,
			u64.Draw(t, "immediate"))
	})
}

func roundTrip[H comparable](t *rapid.T, n int, put func([]byte, *H), get func([]byte) H, h H) {
	b := make([]byte, 64)
	if put(b, &h); get(b[:n]) != h {
		t.Fatalf("got %+v, want %+v", get(b[:n]), h)
	}
}

func TestHotPathDoesNotAllocate(t *testing.T) {
	b := make([]byte, 64)
	buf := make([]byte, 0, MaxTerminateLen)
	hdr, body := read16[:ddp.UntaggedLen], read16[ddp.UntaggedLen:]
	read := ReadRequest{Size: 16}
	atomic := AtomicRequest{Op: AtomicCmpSwap}
	resp := AtomicResponse{ID: 1}
	var sink uint64
	for name, f := range map[string]func(){
		"PutReadRequest":    func() { PutReadRequest(b, &read) },
		"GetReadRequest":    func() { r := GetReadRequest(b); sink += r.SinkTO },
		"PutAtomicRequest":  func() { PutAtomicRequest(b, &atomic) },
		"GetAtomicRequest":  func() { r := GetAtomicRequest(b); sink += r.TO },
		"PutAtomicResponse": func() { PutAtomicResponse(b, &resp) },
		"GetAtomicResponse": func() { r := GetAtomicResponse(b); sink += r.Original },
		"Immediate":         func() { PutImmediate(b, 7); sink += GetImmediate(b) },
		"Control":           func() { op, _ := ParseControl(Control(OpSend)); sink += uint64(op) },
		"CheckInbound":      func() { sink += uint64(CheckInbound(OpSend, false, 0, false)) },
		"Terminate": func() {
			term := NewTerminate(TermProtAccess, 46, hdr, body)
			buf = AppendTerminate(buf[:0], &term)
		},
	} {
		if got := testing.AllocsPerRun(100, f); got != 0 {
			t.Errorf("%s allocates %v times a call", name, got)
		}
	}
	_ = sink
}

func FuzzHeaders(f *testing.F) {
	f.Add(read16[ddp.UntaggedLen:])
	f.Add(make([]byte, AtomicRequestLen))
	f.Fuzz(func(t *testing.T, b []byte) {
		got := make([]byte, AtomicRequestLen)
		if len(b) >= ReadRequestLen {
			r := GetReadRequest(b)
			if PutReadRequest(got, &r); string(got[:ReadRequestLen]) != string(b[:ReadRequestLen]) {
				t.Fatalf("read request %x becomes %x", b, got)
			}
		}
		if len(b) >= AtomicResponseLen {
			r := GetAtomicResponse(b)
			if PutAtomicResponse(got, &r); string(got[:AtomicResponseLen]) != string(b[:AtomicResponseLen]) {
				t.Fatalf("atomic response %x becomes %x", b, got)
			}
		}
		if len(b) >= AtomicRequestLen {
			r := GetAtomicRequest(b)
			PutAtomicRequest(got, &r)
			if want := append([]byte{0, 0, 0, b[3] & 15}, b[4:AtomicRequestLen]...); string(got) != string(want) {
				t.Fatalf("atomic request %x becomes %x", b, got)
			}
		}
	})
}

// Headers are written into as many octets as they have; into one fewer nothing is.
func TestHeadersNeedTheirOctets(t *testing.T) {
	for name, c := range map[string]struct {
		n   int
		put func(b []byte)
	}{
		"atomic request": {AtomicRequestLen, func(b []byte) { PutAtomicRequest(b, &AtomicRequest{}) }},
		"atomic response": {AtomicResponseLen,
			func(b []byte) { PutAtomicResponse(b, &AtomicResponse{ID: 1 << 24, Original: 1 << 56}) }},
		"read request": {ReadRequestLen,
			func(b []byte) { PutReadRequest(b, &ReadRequest{SinkSTag: 1 << 24, SrcTO: 1}) }},
	} {
		c.put(make([]byte, c.n))
		short := make([]byte, c.n-1)
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: %d octets were enough", name, c.n-1)
				}
			}()
			c.put(short)
		}()
		for i, b := range short {
			if b != 0 {
				t.Errorf("%s: octet %d was written before the panic", name, i)
			}
		}
	}
}
