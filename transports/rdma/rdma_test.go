package rdma

import (
	"errors"
	"fmt"
	"net"
	"reflect"
	"strings"
	"testing"
)

func TestWorkRequestsAndCompletionsHoldNoPointer(t *testing.T) {
	var walk func(path string, ty reflect.Type)
	walk = func(path string, ty reflect.Type) {
		switch ty.Kind() {
		case reflect.Struct:
			for i := range ty.NumField() {
				walk(path+"."+ty.Field(i).Name, ty.Field(i).Type)
			}
		case reflect.Array:
			walk(path+"[]", ty.Elem())
		case reflect.Bool, reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
			reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		default:
			t.Errorf("%s is a %s: rings of it would be scanned by the collector and could not be handed to C", path,
				ty.Kind())
		}
	}
	for _, v := range []any{SendWR{}, RecvWR{}, WC{}, SGE{}} {
		walk(reflect.TypeOf(v).Name(), reflect.TypeOf(v))
	}
}

func TestQPTransitionsFollowTheTable(t *testing.T) {
	legal := map[QPState]string{
		QPReset: "RESET INIT ERR", QPInit: "RESET INIT RTR ERR", QPRTR: "RESET RTS ERR",
		QPRTS: "RESET RTS SQD ERR", QPSQD: "RESET RTS SQD ERR", QPErr: "RESET ERR",
	}
	for from := range numQPStates {
		for to := range numQPStates {
			want := strings.Contains(" "+legal[from]+" ", " "+to.String()+" ")
			if got := CanTransition(from, to); got != want {
				t.Errorf("CanTransition(%s, %s) = %v, want %v", from, to, got, want)
			}
		}
	}
	if CanTransition(numQPStates, QPErr) || CanTransition(QPErr, numQPStates) {
		t.Error("a state outside the table has an edge")
	}
	for s, want := range map[QPState][2]bool{QPReset: {false, false}, QPInit: {true, false}, QPRTR: {true, false},
		QPRTS: {true, true}, QPSQD: {true, true}, QPErr: {true, true}} {
		if got := [2]bool{s.CanPostRecv(), s.CanPostSend()}; got != want {
			t.Errorf("%s: can post receive, send = %v, want %v", s, got, want)
		}
	}
}

func TestEveryNameIsFilledIn(t *testing.T) {
	seen := map[string]string{}
	check := func(kind string, i int, s string) {
		t.Helper()
		if s == "" || strings.Contains(s, "?") {
			t.Errorf("%s %d has no name", kind, i)
		}
		if prev, dup := seen[kind+s]; dup {
			t.Errorf("%s %d is named %q like %s", kind, i, s, prev)
		}
		seen[kind+s] = fmt.Sprint(i)
	}
	for o := range numOpcodes {
		check("opcode", int(o), o.String())
		if wc := o.Completes(); wc.IsRecv() {
			t.Errorf("%s completes as the receive %s", o, wc)
		}
	}
	for s := range numStatus {
		check("status", int(s), s.String())
		if (s.Cause() == "") != (s == StatusSuccess) {
			t.Errorf("%s: cause %q", s, s.Cause())
		}
	}
	for i := range numFeatures {
		check("feature", i, Features(1<<i).String())
	}
	for o := range WCRecvWriteImm + 1 {
		check("wc opcode", int(o), o.String())
	}
	for e := EventQPFatal; e <= EventPeerDisconnect; e++ {
		check("event", int(e), e.String())
	}
	for _, s := range []string{numOpcodes.String(), numStatus.String(), WCOpcode(99).String(), numQPStates.String(),
		EventType(99).String()} {
		if !strings.Contains(s, "?") {
			t.Errorf("a value outside its range prints %q", s)
		}
	}
}

func TestAccessNeedsLocalWriteForRemoteChange(t *testing.T) {
	for a, ok := range map[Access]bool{
		0: true, LocalWrite: true, RemoteRead: true, LocalWrite | RemoteWrite: true, accessAll: true,
		RemoteWrite: false, RemoteAtomic: false, RemoteRead | RemoteWrite: false, 1 << 7: false,
	} {
		if err := a.Validate(); (err == nil) != ok || err != nil && !errors.Is(err, ErrInvalid) {
			t.Errorf("Validate(%#x) = %v, want ok=%v", uint8(a), err, ok)
		}
	}
	fails(t, "on demand, which nobody has by itself", (LocalWrite | OnDemand).Validate(), ErrNotSupported)
}

func TestMissingListsEveryGapAtOnce(t *testing.T) {
	c := Caps{Ops: Ops(OpSend), Features: FeatFence, MaxSGE: 1, MaxMsg: 10}
	err := c.Missing(Need{Ops: Ops(OpSend, OpRead, OpFetchAdd), Features: FeatFence | FeatSRQ, SGE: 2, Inline: 1,
		Msg: 11, Priorities: 2})
	if !errors.Is(err, ErrNotSupported) {
		t.Fatalf("Missing = %v, want ErrNotSupported", err)
	}
	for _, want := range []string{"read", "fetch_add", "srq", "scatter/gather", "inline", "message length"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q does not name %q", err, want)
		}
	}
	if err := c.Missing(Need{Ops: Ops(OpSend), Features: FeatFence, SGE: 1, Msg: 10}); err != nil {
		t.Errorf("a met need is reported missing: %v", err)
	}
}

func TestErrorsCompareAsDocumented(t *testing.T) {
	if !errors.Is(ErrClosed, net.ErrClosed) {
		t.Error("ErrClosed is not net.ErrClosed")
	}
	if err := error(&OpError{"connect", "host:1", &RejectError{[]byte("busy")}}); !errors.Is(err, ErrRejected) ||
		err.Error() != "connect host:1: connection rejected by the peer" {
		t.Errorf("reject reads %q", err)
	}
	if got := (&OpError{"alloc pd", "", ErrClosed}).Error(); got != "alloc pd: closed" {
		t.Errorf("without an object: %q", got)
	}
}

func TestLoadByteReadsEveryPosition(t *testing.T) {
	b := alloc(t, 64)
	defer b.Free()
	for i := range b.Bytes() {
		b.Bytes()[i] = byte(i * 3)
	}
	for i := range b.Bytes() {
		if got := LoadByte(b.Bytes(), i); got != byte(i*3) {
			t.Errorf("LoadByte(%d) = %d, want %d", i, got, byte(i*3))
		}
	}
}

func TestLengthsSumOnlyTheUsedElements(t *testing.T) {
	wr := SendWR{NumSGE: 2, SGE: [MaxSGE]SGE{{Len: 1 << 31}, {Len: 1 << 31}, {Len: 5}}}
	if got := wr.Len(); got != 1<<32 {
		t.Errorf("Len = %d, want %d: lengths must not wrap at 32 bits", got, uint64(1)<<32)
	}
	rv := RecvWR{NumSGE: 200, SGE: [MaxSGE]SGE{{Len: 1}, {Len: 1}, {Len: 1}, {Len: 1}}}
	if got := rv.Len(); got != MaxSGE {
		t.Errorf("an impossible element count gives %d", got)
	}
}

func TestEventRingKeepsTheNewest(t *testing.T) {
	var r EventRing
	for n := range uint32(MaxEvents + 7) {
		r.Put(Event{QPNum: n})
	}
	for want := uint32(7); want < MaxEvents+7; want++ {
		if e, ok := r.Event(); !ok || e.QPNum != want {
			t.Fatalf("event %d, %v, want %d", e.QPNum, ok, want)
		}
	}
	if _, ok := r.Event(); ok {
		t.Error("an empty ring has an event")
	}
	r.Put(Event{QPNum: 1})
	if e, ok := r.Event(); !ok || e.QPNum != 1 {
		t.Errorf("%v, %v behind an empty ring", e, ok)
	}
}

// TestEdgesNeedWhatTheManualSays: the numbers of ibv_modify_qp(3) for RC, each attribute
// once, and nothing where there is no edge.
func TestEdgesNeedWhatTheManualSays(t *testing.T) {
	path := []QPState{QPReset, QPInit, QPRTR, QPRTS}
	var all QPAttrs
	for i, want := range []int{3, 6, 5} {
		needs, takes := AttrsOf(path[i], path[i+1])
		if len(needs.Each()) != want || needs&takes != 0 || needs&all != 0 {
			t.Errorf("%s to %s needs %s and takes %s", path[i], path[i+1], needs, takes)
		}
		all |= needs
	}
	if got := (AttrPKey | AttrMaxRDAtomic).String(); got != "pkey_index,max_qp_rd_atomic" {
		t.Error(got)
	}
	for from := QPReset; from <= QPErr; from++ {
		for to := QPReset; to <= QPErr; to++ {
			if needs, takes := AttrsOf(from, to); needs|takes != 0 && !CanTransition(from, to) {
				t.Errorf("%s to %s is no edge and needs %s", from, to, needs)
			}
		}
	}
}
