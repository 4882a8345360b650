package suite

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/rdmaperf/rdmaperf/softstack/mpa"
	"github.com/rdmaperf/rdmaperf/softstack/rdmap"
	"github.com/rdmaperf/rdmaperf/softstack/wiretest"
	"github.com/rdmaperf/rdmaperf/softstack/wiretest/target"
)

func hex(v uint16) string { return fmt.Sprintf("0x%x", v) }

// padded is a Write to nobody whose FPDU has pad: its outcome shows whether the
// framing was taken (1/1/00) or refused (2/0/02).
func padded() *wiretest.Segment { return wiretest.Write(noSTag, ourTO, []byte("x")) }

// Parameters of iWARP stacks that a test target's device may be opened with.
const (
	variantMarkers = "markers"
	variantNoCRC   = "nocrc"
)

// varied is a stage on a device with a parameter; ok is false where it has none such.
func (t *trial) varied(variant string) (o target.Stage, ok bool) {
	o = plainStage()
	if ok = slices.Contains(t.variants, variant); ok {
		o.Variant = variant
	}
	return o, ok
}

func (t *trial) marked() *link {
	o, ok := t.varied(variantMarkers)
	if !ok {
		t.Lacks("the device under test cannot be asked for markers")
	}
	l := t.connectTo(o)
	if !l.rep.Markers {
		t.Fail("a Reply that asks for none", "a Reply that asks for markers")
	}
	return l
}

var framing = []row{
	must("w-07/bad-crc", "RFC 5044 §6, §8 code 2",
		"An FPDU with a bad CRC is not delivered, and ends the stream with Terminate 2/0/02.", func(t *trial) {
			l := t.connect()
			l.drops(l.hello().BadCRC(), rdmap.TermMPACRC)
			l = t.connect().learn()
			l.drops(l.hello().BadCRC(), rdmap.TermMPACRC)
		}),
	hazard(must("w-23/length-zero", "RFC 5044 §4.1, §8", "A ULPDU_Length of 0 is an error.", func(t *trial) {
		t.connect().drops(wiretest.Raw(), rdmap.TermMPAMarker, rdmap.TermDDPLocal, rdmap.TermLocal,
			rdmap.TermUntaggedVersion, rdmap.TermTaggedVersion)
	})),
	hazard(must("w-24/length-below-header", "RFC 5041 §4",
		"A ULPDU shorter than its header is an error, and nothing is placed.", func(t *trial) {
			for _, u := range []*wiretest.Segment{
				wiretest.Write(noSTag, 0, nil).Shorten(1), wiretest.Write(noSTag, 0, nil).Shorten(13),
				wiretest.Send(1, nil).Shorten(2), wiretest.Send(1, nil).Shorten(17),
			} {
				t.connect().drops(u, rdmap.TermMPAMarker, rdmap.TermDDPLocal, rdmap.TermLocal)
			}
		})),
	must("w-25/longest", "RFC 5044 §4.1",
		"An FPDU of 65535 octets is taken: the fault found is that of its content.", func(t *trial) {
			t.connect().rejects(wiretest.Write(noSTag, ourTO, make([]byte, 65535-14)), rdmap.TermTaggedSTag)
		}),
	must("w-26/truncated", "RFC 5044 §8 code 1; RFC 5041 §6.2",
		"An FPDU that the end of the stream cuts is not delivered.", func(t *trial) {
			l := t.connect()
			_ = l.Write(l.Encode(l.hello())[:30])
			_ = l.CloseWrite()
			e := l.finish()
			if e.Kind == wiretest.EndTimeout || len(e.FPDUs) > len(e.Terminates()) {
				t.Fail(fmt.Sprintf("%v after %v", e.Kind, e.FPDUs),
					"the end of the connection, and no answer but a Terminate")
			}
			if got := e.Terminates(); len(got) > 0 && got[0] != rdmap.TermMPATCPLost {
				t.Fail(fmt.Sprint(got), "no Terminate", "Terminate "+rdmap.TermMPATCPLost.String())
			}
		}),
	must("w-27/octet-by-octet", "RFC 5044 §6", "An FPDU may come one octet at a time.", func(t *trial) {
		l := t.connect()
		if err := l.Dribble(1, l.Encode(l.hello())); err != nil {
			t.Fail(err.Error(), "every octet is taken")
		}
		l.answered()
	}),
	must("w-28/many-at-once", "RFC 5044 §6", "Many FPDUs may come at once, cut anywhere.", func(t *trial) {
		for _, cut := range []int{1, 7, 63, 501} {
			l := t.connect()
			var segs []*wiretest.Segment
			for range 50 {
				segs = append(segs, wiretest.Write(noSTag, 0, nil))
			}
			if err := l.Dribble(cut*10, l.Encode(append(segs, l.hello())...)); err != nil {
				t.Fail(err.Error(), "every octet is taken")
			}
			l.answered()
		}
	}),
	must("w-29/pad-not-zero", "RFC 5044 §4.1", "Pad is covered by the CRC and else not looked at.", func(t *trial) {
		s := padded()
		t.one(s.Pad([]byte{0xff, 0xee, 0xdd}[:mpa.Pad(len(s.ULPDU()))]...), rdmap.TermTaggedSTag)
	}),
	must("w-30/crc-coverage", "RFC 5044 §4.4",
		"The CRC covers the pad, and is transmitted with its low octet first.", func(t *trial) {
			for _, f := range []func(covered []byte) [4]byte{
				func(b []byte) (sum [4]byte) { mpa.PutCRC(sum[:], mpa.CRC(0, b[:len(b)-3])); return sum },
				func(b []byte) (sum [4]byte) { binary.BigEndian.PutUint32(sum[:], mpa.CRC(0, b)); return sum },
			} {
				// the pad would not show if it were zero
				t.connect().drops(wiretest.Send(1, []byte("hello")).Pad(9, 9, 9).CRC(f), rdmap.TermMPACRC)
			}
		}),
	ofTarget("w-31/marker-pointer", "RFC 5044 §8 code 3",
		"A marker that points elsewhere ends the stream with Terminate 2/0/03.", wantsMarkers, func(t *trial) {
			l := t.marked()
			l.drops(l.hello().Mark(func(uint16) [4]byte { return [4]byte{0, 0, 1, 0} }), rdmap.TermMPAMarker)
			later := func(p uint16) [4]byte { return [4]byte{0, 0, byte(p >> 8), byte(p) + 4} }
			t.marked().drops(padded().Append(make([]byte, 600)...).Mark(later), rdmap.TermMPAMarker)
		}),
	ofTarget("w-32/markers-missing", "RFC 5044 §8 code 3", "Markers that are left out end the stream.", wantsMarkers,
		func(t *trial) {
			l := t.marked()
			l.Enc.Markers = false
			l.drops(l.hello(), rdmap.TermMPAMarker, rdmap.TermMPACRC) // what is read as a marker may point to itself
		}),
	ofTarget("w-33/marker-reserved", "RFC 5044 §4.2", "Reserved bits of a marker are ignored.", wantsMarkers,
		func(t *trial) {
			l := t.marked()
			l.transmit(l.hello().Mark(func(p uint16) [4]byte { return [4]byte{0xff, 0xff, byte(p >> 8), byte(p) | 3} }))
			l.answered()
		}),
	ofTarget("w-34/marker-places", "RFC 5044 §4.2, §4.3", "Markers may stand anywhere in an FPDU.", wantsMarkers,
		func(t *trial) {
			// Every length of a Write moves the next marker by four octets: all places come.
			l := t.marked()
			to := l.app.region(target.AllRights)
			var segs []*wiretest.Segment
			for n := range 140 {
				b := bytes.Repeat([]byte{byte(n + 1)}, 5*n)
				segs = append(segs, wiretest.Write(to.STag, to.TO, b))
				l.app.placed(to, 0, b)
			}
			l.transmit(append(segs, l.hello())...)
			l.answered()
		}),
	must("w-35/behind-bad-crc", "RFC 5044 §8; RFC 5041 §7.1",
		"What follows an FPDU with a bad CRC is dropped.", func(t *trial) {
			l := t.connect()
			l.transmit(wiretest.Write(noSTag, 0, nil).BadCRC(), l.hello())
			l.ends(nil, rdmap.TermMPACRC)
		}),
}
