package wire

import (
	"errors"
	"testing"
)

func TestWhatIsPutIsRead(t *testing.T) {
	g := Greeting{Node: 3, You: Nobody, Link: 2, Links: 4, Sends: true, RKey: 7, Base: 1 << 40, Size: 1 << 26, Token: TokenOf("x"), Ring: 9, Head: 11}
	if got, err := ParseGreeting(append(g.Encode(), 0, 0)); err != nil || got != g {
		t.Errorf("greeting: %+v, %v", got, err)
	}
	if TokenOf("x") == TokenOf("y") {
		t.Error("two secrets, one token")
	}
	b := make([]byte, 64)
	r := Request{Start: 1 << 33, ReplyTo: 5, Len: 32, Room: 99, Slot: 0xabcdef, Priority: 3}
	r.Put(b)
	if got, err := GetRequest(b); err != nil || got != r {
		t.Errorf("request: %+v, %v", got, err)
	}
	p := Reply{Len: 48, Code: -103, Slot: 0xabcdef}
	p.Put(b)
	if got, err := GetReply(b); err != nil || got != p {
		t.Errorf("reply: %+v, %v", got, err)
	}
	if kind, port, low, ok := ParseImm(Imm(ImmOneWay, 62, 0xfedcba)); kind != ImmOneWay || port != 62 || low != 0xfedcba || !ok {
		t.Errorf("imm: %x %d %x %v", kind, port, low, ok)
	}
	if _, _, _, ok := ParseImm(0xc0000000); ok {
		t.Error("a kind that does not exist was taken")
	}
	PutWord(b, 77)
	if v, ok := Word(b); v != 77 || !ok {
		t.Errorf("word: %d %v", v, ok)
	}
	b[3]++
	if _, ok := Word(b); ok {
		t.Error("half a word was believed")
	}
}

func FuzzParsers(f *testing.F) {
	g := Greeting{Links: 1, Size: 1}
	f.Add(g.Encode())
	f.Add(make([]byte, 64))
	f.Fuzz(func(t *testing.T, b []byte) {
		if g, err := ParseGreeting(b); err != nil && !errors.Is(err, ErrPeer) || err == nil && g.Base+g.Size < g.Base {
			t.Errorf("greeting: %+v, %v", g, err)
		}
		if r, err := GetRequest(b); err == nil && int(r.Len) > len(b)-RequestLen {
			t.Errorf("request of %d bytes in %d", r.Len, len(b))
		}
		if r, err := GetReply(b); err == nil && int(r.Len) > len(b)-ReplyLen {
			t.Errorf("reply of %d bytes in %d", r.Len, len(b))
		}
	})
}
