package verbs

import (
	"bytes"
	"encoding/hex"
	"errors"
	"strings"
	"testing"

	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

func TestFramesHaveTheseBytes(t *testing.T) {
	e := end4(0x010203)
	e.LID = 0x0405
	for _, c := range []struct {
		f    frame
		want string // without the zeros at the end
	}{
		{frame{kind: frameRequest, endpoint: e}, "72707678" + "01010005" + "00010203" + "00abcdef" + "0405" + "040207" +
			"000000" + "00000400" + "00000000000000000000ffff0a000001" + "68656c6c6f"},
		{frame{kind: frameRefuse, why: refusedFabric}, "72707678" + "010302"},
		{frame{kind: frameRefuse, endpoint: endpoint{Private: []byte{1}}}, "72707678" + "01030001" +
			strings.Repeat("00", 36) + "01"},
		{frame{kind: frameReady}, "72707678" + "0104"},
		{frame{kind: frameBye}, "72707678" + "0105"},
	} {
		b := must(appendFrame(nil, &c.f))(t)
		if want := c.want + strings.Repeat("0", 2*frameLen-len(c.want)); hex.EncodeToString(b) != want {
			t.Errorf("%+v =\n %x, want\n %s", c.f, b, want)
		}
		got, err := decodeFrame((*[frameLen]byte)(b))
		if err != nil || got.kind != c.f.kind || got.why != c.f.why || !equal(got.endpoint, c.f.endpoint) {
			t.Errorf("decoded %+v, %v, want %+v", got, err, c.f)
		}
	}
}

func TestFramesThatBreakTheRulesAreRefused(t *testing.T) {
	good := func(kind frameKind) []byte {
		f := &frame{kind: kind}
		if kind <= frameAnswer {
			f.endpoint = end4(17)
		}
		return must(appendFrame(nil, f))(t)
	}
	for _, c := range []struct {
		what string
		kind frameKind
		at   int
		put  []byte
	}{
		{"another magic", frameRequest, 3, []byte{'y'}},
		{"another version", frameRequest, 4, []byte{2}},
		{"no kind", frameBye, 5, []byte{0}},
		{"an unknown kind", frameBye, 5, []byte{byte(numFrameKinds)}},
		{"a reason to accept", frameAnswer, 6, []byte{1}},
		{"an unknown reason", frameRefuse, 6, []byte{byte(numRefusals)}},
		{"private data beyond the frame", frameRequest, 7, []byte{maxExchangePrivate + 1}},
		{"private data with bye", frameBye, 7, []byte{1}},
		{"stray bytes behind the private data", frameRequest, frameLen - 1, []byte{1}},
		{"stray bytes in the middle", frameRequest, 23, []byte{1}},
		{"QP 0", frameRequest, 8, []byte{0, 0, 0, 0}},
		{"QP 1", frameRequest, 8, []byte{0, 0, 0, 1}},
		{"a QPN of 25 bits", frameAnswer, 8, []byte{1, 0, 0, 0}},
		{"a PSN of 25 bits", frameAnswer, 12, []byte{1, 0, 0, 0}},
		{"an RNR retry of 4 bits", frameRequest, 20, []byte{8}},
		{"an MTU between two", frameRequest, 24, []byte{0, 0, 5, 0xdc}},
		{"an MTU of 128", frameRequest, 24, []byte{0, 0, 0, 128}},
		{"an MTU of 8192", frameRequest, 24, []byte{0, 0, 0x20, 0}},
		{"no address", frameRequest, 28, make([]byte, 16)},
		{"an endpoint in ready", frameReady, 8, []byte{0, 0, 0, 17}},
		{"a gid in bye", frameBye, 28, []byte{1}},
	} {
		b := good(c.kind)
		if _, err := decodeFrame((*[frameLen]byte)(b)); err != nil {
			t.Fatalf("%s: the frame before the change: %v", c.what, err)
		}
		copy(b[c.at:], c.put)
		if f, err := decodeFrame((*[frameLen]byte)(b)); !errors.Is(err, rdma.ErrProtocol) {
			t.Errorf("%s: %+v, %v", c.what, f, err)
		}
	}
}

// What decodes has one encoding, and no field is out of bounds.
func FuzzDecodeFrame(f *testing.F) {
	for _, fr := range []*frame{
		{kind: frameRequest, endpoint: end4(17)}, {kind: frameAnswer, endpoint: endIB(18)}, {kind: frameReady},
		{kind: frameBye},
		{kind: frameRefuse, why: refusedBusy, endpoint: endpoint{Private: bytes.Repeat([]byte{7}, maxExchangePrivate)}},
	} {
		b, err := appendFrame(nil, fr)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var b [frameLen]byte
		copy(b[:], data)
		fr, err := decodeFrame(&b)
		if err != nil {
			if !errors.Is(err, rdma.ErrProtocol) {
				t.Fatalf("error %v is no protocol error", err)
			}
			return
		}
		if fr.QPN > max24 || fr.PSN > max24 || fr.RNRRetry > 7 || len(fr.Private) > maxExchangePrivate {
			t.Fatalf("out of bounds: %+v", fr)
		}
		again, err := appendFrame(nil, fr)
		if err != nil || !bytes.Equal(again, b[:]) {
			t.Fatalf("%+v encodes as %x, %v, came as %x", fr, again, err, b)
		}
	})
}
