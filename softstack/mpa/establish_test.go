package mpa

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// wireTrip sends a frame through its octets.
func wireTrip(t tester, f *Frame) *Frame {
	t.Helper()
	return need(ParseFrame(AppendFrame(nil, f)))(t)
}

// establish runs the whole exchange between two sides over the wire format.
func establish(t tester, initiator, responder Config) (i, r Negotiated, ierr, rerr error) {
	t.Helper()
	req := wireTrip(t, need(NewRequest(initiator, []byte("to responder")))(t))
	if r, rerr = responder.HandleRequest(req); rerr != nil {
		return i, r, ierr, rerr
	}
	rep := need(responder.NewReply(req, r, []byte("to initiator")))(t)
	i, ierr = initiator.HandleReply(req, wireTrip(t, rep))
	return i, r, ierr, rerr
}

// W-13: CRC is used when either frame asks for it.
func TestCRCIsUsedWhenEitherSideWantsIt(t *testing.T) {
	for _, c := range []struct{ req, rep, want bool }{
		{false, false, false}, {true, false, true}, {false, true, true}, {true, true, true},
	} {
		for _, rev := range []uint8{1, 2} {
			i, r, ierr, rerr := establish(t, Config{Revision: rev, CRC: c.req}, Config{CRC: c.rep})
			if ierr != nil || rerr != nil || i.CRC != c.want || r.CRC != c.want {
				t.Errorf("revision %d, %+v: initiator %t %v, responder %t %v", rev, c, i.CRC, ierr, r.CRC, rerr)
			}
		}
		// A responder that leaves C out of its Reply changes nothing.
		req := &Frame{Rev: 1, CRC: c.req}
		n, err := Config{CRC: c.req}.HandleReply(req, &Frame{Reply: true, Rev: 1, CRC: c.rep})
		if err != nil || n.CRC != c.want {
			t.Errorf("bare frames %+v: %t, %v", c, n.CRC, err)
		}
	}
}

// W-12: M speaks of what the side that sets it wants to receive.
func TestMarkersFollowTheReceiver(t *testing.T) {
	for _, initiator := range []bool{false, true} {
		for _, responder := range []bool{false, true} {
			i, r, ierr, rerr := establish(t, Config{Markers: initiator}, Config{Markers: responder})
			if ierr != nil || rerr != nil {
				t.Fatal(ierr, rerr)
			}
			if i.RxMarkers != initiator || r.TxMarkers != initiator || i.TxMarkers != responder ||
				r.RxMarkers != responder {
				t.Errorf("initiator M %t, responder M %t: %+v, %+v", initiator, responder, i, r)
			}
		}
	}
}

// W-15: a refusal carries the responder's private data and is not an error.
func TestReject(t *testing.T) {
	for _, rev := range []uint8{1, 2} {
		cfg := Config{Revision: rev, CRC: true, IRD: 3, ORD: 5}
		req := need(NewRequest(cfg, nil))(t)
		rep := wireTrip(t, need(NewReject(req, []byte("busy")))(t))
		if rep.Enhanced != (rev == 2) || rep.Rev != rev || !rep.Reject || !rep.CRC {
			t.Errorf("revision %d: reject frame %+v", rev, rep)
		}
		n, err := cfg.HandleReply(req, rep)
		if err != nil || !n.Rejected || string(n.PeerPrivate) != "busy" {
			t.Errorf("revision %d: %+v, %v", rev, n, err)
		}
		if rev == 2 && (n.PeerIRD != 5 || n.PeerORD != 3) {
			t.Errorf("depths of the refusal: ird %d ord %d", n.PeerIRD, n.PeerORD)
		}
	}
	// V5 refuses an enhanced request without S.
	req, _ := NewRequest(Config{}, nil)
	rep := need(ParseFrame(unhex(t, hexRep+"60020008 00010001 62757379")))(t)
	n, err := Config{}.HandleReply(req, rep)
	if err != nil || !n.Rejected || !bytes.HasSuffix(n.PeerPrivate, []byte("busy")) {
		t.Errorf("V5: %+v, %v", n, err)
	}
}

// W-22 and RFC 6581 §9.1, with the values seen from each side.
func TestDepths(t *testing.T) {
	const nn = NoNegotiation
	for _, c := range []struct {
		name             string
		iIRD, iORD       uint16 // wanted by the initiator
		rIRD, rORD       uint16 // wanted by the responder
		wireIRD, wireORD uint16 // in the Reply
		gotIIRD, gotIORD uint16 // initiator's result
		gotRIRD, gotRORD uint16 // responder's result
	}{
		{"equal", 1, 1, 1, 1, 1, 1, 1, 1, 1, 1},
		{"V4", 1, 2, 2, 1, 2, 1, 1, 2, 2, 1},
		{"responder lowers its ord", 4, 4, 16, 16, 16, 4, 4, 4, 16, 4},
		{"initiator lowers its ord", 16, 16, 4, 4, 4, 4, 16, 4, 4, 4},
		{"responder has no ird", 8, 8, 0, 8, 0, 8, 8, 0, 0, 8},
		{"nobody reads", 0, 0, 0, 0, 0, 0, 0, 0, 0, 0},
		{"largest", 0x3ffe, 0x3ffe, 0x3ffe, 0x3ffe, 0x3ffe, 0x3ffe, 0x3ffe, 0x3ffe, 0x3ffe, 0x3ffe},
		{"W-22 initiator negotiates neither", nn, nn, 7, 9, nn, nn, nn, nn, 7, 9},
		{"W-22 initiator's ird only", nn, 4, 7, 9, 7, nn, nn, 4, 7, 9},
		{"W-22 initiator's ord only", 4, nn, 7, 9, nn, 4, 4, nn, 7, 4},
		{"responder's ird out", 4, 6, nn, 2, nn, 2, 4, 6, nn, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			icfg := Config{IRD: c.iIRD, ORD: c.iORD}
			rcfg := Config{IRD: c.rIRD, ORD: c.rORD}
			i, r, ierr, rerr := establish(t, icfg, rcfg)
			if ierr != nil || rerr != nil {
				t.Fatal(ierr, rerr)
			}
			type depths struct{ IRD, ORD, PeerIRD, PeerORD uint16 }
			want := []depths{{c.gotIIRD, c.gotIORD, c.wireIRD, c.wireORD}, {c.gotRIRD, c.gotRORD, c.iIRD, c.iORD}}
			got := []depths{{i.IRD, i.ORD, i.PeerIRD, i.PeerORD}, {r.IRD, r.ORD, r.PeerIRD, r.PeerORD}}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("initiator, responder (-want +got):\n%s", diff)
			}
		})
	}
}

// W-22: a Reply with 0x3FFF leaves the initiator's own values alone, though it did not ask for that.
func TestReplyWithoutNegotiationKeepsLocalDepths(t *testing.T) {
	cfg := Config{IRD: 3, ORD: 5}
	req, _ := NewRequest(cfg, nil)
	rep := &Frame{Reply: true, Rev: 2, Enhanced: true, Enh: Enhanced{IRD: NoNegotiation, ORD: NoNegotiation}}
	n, err := cfg.HandleReply(req, rep)
	if err != nil || n.IRD != 3 || n.ORD != 5 {
		t.Errorf("ird %d ord %d, %v", n.IRD, n.ORD, err)
	}
}

// CM-20, W-17: one option in common is chosen, the same one on both sides.
func TestRTR(t *testing.T) {
	with := func(mask int) Config {
		return Config{IRD: 1, ORD: 1, RTRSend: mask&1 != 0, RTRWrite: mask&2 != 0, RTRRead: mask&4 != 0}
	}
	for im := 1; im < 8; im++ {
		for rm := range 8 {
			icfg, rcfg := with(im), with(rm)
			icfg.PeerToPeer = true
			want := RTRNone
			switch both := im & rm; {
			case both&2 != 0:
				want = RTRWrite
			case both&4 != 0:
				want = RTRRead
			case both&1 != 0:
				want = RTRSend
			}
			name := fmt.Sprintf("initiator %03b, responder %03b", im, rm)
			i, r, ierr, rerr := establish(t, icfg, rcfg)
			if rm == 0 {
				wantCode(t, rerr, CodeNoRTR)
				continue
			}
			if rerr != nil || !r.PeerToPeer || r.RTR != want {
				t.Errorf("%s: responder %+v, %v, want %v", name, r, rerr, want)
			}
			if want == RTRNone {
				wantCode(t, ierr, CodeNoRTR)
				continue
			}
			if ierr != nil || !i.PeerToPeer || i.RTR != want {
				t.Errorf("%s: initiator %+v, %v, want %v", name, i, ierr, want)
			}
		}
	}
}

// RFC 6581 §9.2: a responder with nothing in common names what it can do.
func TestReplyNamesAnOptionOfItsOwn(t *testing.T) {
	for _, enh := range []Enhanced{{PeerToPeer: true, RTRSend: true}, {PeerToPeer: true}} {
		req := &Frame{Rev: 2, Enhanced: true, Enh: enh}
		cfg := Config{RTRRead: true}
		n, err := cfg.HandleRequest(req)
		if err != nil || n.RTR != RTRNone {
			t.Fatalf("%+v, %v", n, err)
		}
		rep, err := cfg.NewReply(req, n, nil)
		if err != nil || !rep.Enh.PeerToPeer || !rep.Enh.RTRRead || rep.Enh.RTRSend || rep.Enh.RTRWrite {
			t.Errorf("reply %+v, %v", rep, err)
		}
	}
}

func TestReadRTRNeedsAPlace(t *testing.T) {
	icfg := Config{PeerToPeer: true, RTRRead: true}
	i, r, ierr, rerr := establish(t, icfg, Config{RTRRead: true})
	if ierr != nil || rerr != nil || r.IRD != 1 || i.PeerIRD != 1 || i.RTR != RTRRead {
		t.Errorf("initiator %+v %v, responder %+v %v", i, ierr, r, rerr)
	}
}

// RFC 6581 §9.2: B, C and D mean nothing without A.
func TestOptionsWithoutPeerToPeerAreIgnored(t *testing.T) {
	all := Enhanced{RTRSend: true, RTRWrite: true, RTRRead: true}
	cfg := Config{RTRWrite: true}
	n, err := cfg.HandleRequest(&Frame{Rev: 2, Enhanced: true, Enh: all})
	if err != nil || n.PeerToPeer || n.RTR != RTRNone {
		t.Errorf("responder %+v, %v", n, err)
	}
	rep, err := cfg.NewReply(&Frame{Rev: 2, Enhanced: true, Enh: all}, n, nil)
	if err != nil || rep.Enh != (Enhanced{}) {
		t.Errorf("reply %+v, %v", rep.Enh, err)
	}
	req, _ := NewRequest(cfg, nil)
	if req.Enh != (Enhanced{}) {
		t.Errorf("request %+v", req.Enh)
	}
	n, err = cfg.HandleReply(req, &Frame{Reply: true, Rev: 2, Enhanced: true, Enh: all})
	if err != nil || n.PeerToPeer || n.RTR != RTRNone {
		t.Errorf("initiator %+v, %v", n, err)
	}
}

// CM-19: a revision 1 request gets an unenhanced revision 1 reply, and local depths hold on both sides.
func TestRevision1(t *testing.T) {
	icfg := Config{Revision: 1, IRD: 3, ORD: 5}
	rcfg := Config{IRD: 7, ORD: 9, RTRWrite: true}
	req, err := NewRequest(icfg, []byte("hi"))
	if err != nil || req.Enhanced || req.Rev != 1 {
		t.Fatalf("request %+v, %v", req, err)
	}
	i, r, ierr, rerr := establish(t, icfg, rcfg)
	if ierr != nil || rerr != nil {
		t.Fatal(ierr, rerr)
	}
	wantI := Negotiated{Revision: 1, IRD: 3, ORD: 5, PeerPrivate: []byte("to initiator")}
	wantR := Negotiated{Revision: 1, IRD: 7, ORD: 9, PeerPrivate: []byte("to responder")}
	if diff := cmp.Diff([]Negotiated{wantI, wantR}, []Negotiated{i, r}); diff != "" {
		t.Errorf("initiator, responder (-want +got):\n%s", diff)
	}
	// Revision 2 without S is as unenhanced as revision 1.
	req2 := &Frame{Rev: 2}
	n, err := rcfg.HandleRequest(req2)
	if err != nil || n.Revision != 2 || n.IRD != 7 || n.ORD != 9 {
		t.Errorf("revision 2 without S: %+v, %v", n, err)
	}
	if rep, err := rcfg.NewReply(req2, n, nil); err != nil || rep.Enhanced || rep.Rev != 2 {
		t.Errorf("reply to revision 2 without S: %+v, %v", rep, err)
	}
}

func TestHandleReplyErrors(t *testing.T) {
	cfg := Config{IRD: 4, ORD: 4}
	p2p := Config{IRD: 4, ORD: 4, PeerToPeer: true, RTRWrite: true}
	v1 := Config{Revision: 1}
	good := Frame{Reply: true, Rev: 2, Enhanced: true, Enh: Enhanced{IRD: 4, ORD: 4}}
	bend := func(f func(*Frame)) *Frame {
		g := good
		f(&g)
		return &g
	}
	for _, c := range []struct {
		name string
		cfg  Config
		rep  *Frame
		want Code
	}{
		{"W-08 a request", cfg, bend(func(f *Frame) { f.Reply = false }), CodeBadFrame},
		{"revision 3", cfg, bend(func(f *Frame) { f.Rev = 3 }), CodeBadFrame},
		{"revision 0", cfg, bend(func(f *Frame) { f.Rev = 0 }), CodeBadFrame},
		{"W-19 S with revision 1", cfg, bend(func(f *Frame) { f.Rev = 1 }), CodeBadFrame},
		{"S missing", cfg, bend(func(f *Frame) { f.Enhanced = false }), CodeBadFrame},
		{"revision 1 to revision 2", cfg, &Frame{Reply: true, Rev: 1}, CodeBadFrame},
		{"revision 2 to revision 1", v1, &Frame{Reply: true, Rev: 2}, CodeBadFrame},
		{"S to revision 1", v1, &good, CodeBadFrame},
		{"W-21 responder ord above local ird", cfg, bend(func(f *Frame) { f.Enh.ORD = 5 }), CodeInsufficientIRD},
		{"peer-to-peer refused", p2p, &good, CodeNoRTR},
		{"peer-to-peer forced", cfg, bend(func(f *Frame) { f.Enh.PeerToPeer, f.Enh.RTRWrite = true, true }), CodeNoRTR},
		{"CM-20 no option", p2p, bend(func(f *Frame) { f.Enh.PeerToPeer = true }), CodeNoRTR},
		{"CM-20 another option", p2p, bend(func(f *Frame) { f.Enh.PeerToPeer, f.Enh.RTRSend = true, true }), CodeNoRTR},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := c.cfg.HandleReply(need(NewRequest(c.cfg, nil))(t), c.rep)
			wantCode(t, err, c.want)
		})
	}
}

func TestHandleRequestErrors(t *testing.T) {
	for _, req := range []*Frame{{Reply: true, Rev: 2}, {Rev: 0}, {Rev: 3}, {Rev: 1, Enhanced: true}} { // W-03, W-19
		_, err := Config{RTRWrite: true}.HandleRequest(req)
		wantCode(t, err, CodeBadFrame)
	}
	// RFC 5044 §7.1.1: R is not checked in a Request.
	if _, err := (Config{}).HandleRequest(&Frame{Rev: 1, Reject: true}); err != nil {
		t.Errorf("R in a request: %v", err)
	}
}

func TestBuildersKeepTheLimits(t *testing.T) {
	private := make([]byte, MaxPrivate+1)
	for _, c := range []struct {
		rev   uint8
		limit int
	}{{1, MaxPrivate}, {2, MaxPrivate - 4}, {0, MaxPrivate - 4}} {
		cfg := Config{Revision: c.rev}
		req := need(NewRequest(cfg, private[:c.limit]))(t)
		wireTrip(t, req)
		wireTrip(t, need(cfg.NewReply(req, Negotiated{}, private[:c.limit]))(t))
		wireTrip(t, need(NewReject(req, private[:c.limit]))(t))
		_, e1 := NewRequest(cfg, private[:c.limit+1])
		_, e2 := cfg.NewReply(req, Negotiated{}, private[:c.limit+1])
		_, e3 := NewReject(req, private[:c.limit+1])
		for what, err := range map[string]error{"request": e1, "reply": e2, "reject": e3} {
			if err == nil || !strings.Contains(err.Error(), "build mpa "+what) {
				t.Errorf("revision %d: %s of %d octets: %v", c.rev, what, c.limit+1, err)
			}
			var e *Error
			if errors.As(err, &e) {
				t.Errorf("a local mistake has wire code %d", e.Code)
			}
		}
	}
	for name, cfg := range map[string]Config{
		"revision 3":               {Revision: 3},
		"ird of 15 bits":           {IRD: 0x4000},
		"ord of 15 bits":           {ORD: 0xffff},
		"peer-to-peer, revision 1": {Revision: 1, PeerToPeer: true, RTRWrite: true},
		"peer-to-peer, no rtr":     {PeerToPeer: true},
	} {
		if f, err := NewRequest(cfg, nil); err == nil || f != nil {
			t.Errorf("%s: NewRequest = %+v, %v", name, f, err)
		}
	}
	req := &Frame{Rev: 2, Enhanced: true, Enh: Enhanced{IRD: 2, ORD: 2}}
	for name, n := range map[string]Negotiated{
		"ird of 15 bits":          {IRD: 0x4000},
		"ord above initiator ird": {ORD: 3},
	} {
		if f, err := (Config{}).NewReply(req, n, nil); err == nil || f != nil {
			t.Errorf("%s: NewReply = %+v, %v", name, f, err)
		}
	}
}

// Whatever two sides want, they conclude the same.
func TestBothSidesAgreeProperty(t *testing.T) {
	depth := rapid.OneOf(rapid.Uint16Range(0, 8), rapid.Uint16Range(0, NoNegotiation),
		rapid.Just(uint16(NoNegotiation)))
	config := func(t *rapid.T, side string) Config {
		return Config{
			CRC:      rapid.Bool().Draw(t, side+" crc"),
			Markers:  rapid.Bool().Draw(t, side+" markers"),
			RTRSend:  rapid.Bool().Draw(t, side+" send"),
			RTRWrite: rapid.Bool().Draw(t, side+" write"),
			RTRRead:  rapid.Bool().Draw(t, side+" read"),
			IRD:      depth.Draw(t, side+" ird"),
			ORD:      depth.Draw(t, side+" ord"),
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		icfg, rcfg := config(t, "initiator"), config(t, "responder")
		icfg.Revision = rapid.Uint8Range(1, 2).Draw(t, "revision")
		if own := icfg.options(); icfg.Revision == 2 && pickRTR(own, own) != RTRNone {
			icfg.PeerToPeer = rapid.Bool().Draw(t, "peer-to-peer")
		}
		i, r, ierr, rerr := establish(t, icfg, rcfg)
		common := pickRTR(icfg.options(), rcfg.options())
		if icfg.PeerToPeer && common == RTRNone {
			if ierr == nil && rerr == nil {
				t.Fatal("no option in common, no error")
			}
			return
		}
		if ierr != nil || rerr != nil {
			t.Fatalf("initiator %v, responder %v", ierr, rerr)
		}
		if i.Revision != r.Revision || i.CRC != r.CRC || i.TxMarkers != r.RxMarkers || i.RxMarkers != r.TxMarkers ||
			i.PeerToPeer != r.PeerToPeer || i.RTR != r.RTR {
			t.Fatalf("initiator %+v\nresponder %+v", i, r)
		}
		if i.ORD > icfg.ORD || r.ORD > rcfg.ORD || i.IRD != icfg.IRD {
			t.Fatalf("a side got more than it wanted: %+v, %+v", i, r)
		}
		if icfg.Revision == 2 {
			if icfg.ORD != NoNegotiation && rcfg.IRD != NoNegotiation && i.ORD > r.IRD {
				t.Fatalf("initiator ord %d above responder ird %d", i.ORD, r.IRD)
			}
			if icfg.IRD != NoNegotiation && r.ORD > i.IRD {
				t.Fatalf("responder ord %d above initiator ird %d", r.ORD, i.IRD)
			}
		}
	})
}
