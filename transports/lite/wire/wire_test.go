package wire

import (
	"errors"
	"fmt"
	"testing"

	"github.com/rdmaperf/rdmaperf/internal/expect"
)

func TestWhatIsPutIsRead(t *testing.T) {
	g := Greeting{Node: 3, You: NoNode, Link: 2, Links: 4, Sends: true, RKey: 7, Base: 1 << 40, Size: 1 << 26,
		Token: TokenOf("x"), Ring: 9, Head: 11}
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
	if kind, port, low, ok := ParseImm(Imm(ImmOneWay, 62, 0xfedcba)); kind != ImmOneWay || port != 62 ||
		low != 0xfedcba || !ok {
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

// What is exactly as long as it must be is taken, and a byte less or more in what it says is
// refused: by the length that is there, not by what lies behind it.
func TestLengthsAreExact(t *testing.T) {
	request := func(length uint32, room int) error {
		b := make([]byte, RequestLen+room)
		(&Request{Len: length}).Put(b[:RequestLen:RequestLen])
		_, err := GetRequest(b)
		return err
	}
	reply := func(length uint32, room int) error {
		b := make([]byte, ReplyLen+room)
		(&Reply{Len: length}).Put(b[:ReplyLen:ReplyLen])
		_, err := GetReply(b)
		return err
	}
	for name, of := range map[string]func(uint32, int) error{"request": request, "reply": reply} {
		for _, c := range []struct {
			length uint32
			room   int
			ok     bool
		}{{0, 0, true}, {8, 8, true}, {9, 8, false}, {1, 0, false}} {
			if err := of(c.length, c.room); (err == nil) != c.ok || !c.ok && !errors.Is(err, ErrPeer) {
				t.Errorf("%s of %d bytes in room for %d: %v", name, c.length, c.room, err)
			}
		}
	}
	expect.Is(t, "a request without its last byte", expect.Err(GetRequest(make([]byte, RequestLen-1))), ErrPeer)
	expect.Is(t, "a reply without its last byte", expect.Err(GetReply(make([]byte, ReplyLen-1))), ErrPeer)
	word := make([]byte, WordLen)
	PutWord(word, 5)
	if v, ok := Word(word[:WordLen:WordLen]); v != 5 || !ok {
		t.Errorf("a word of its own length: %d, %v", v, ok)
	}
	g := Greeting{Links: 1, Size: 1}
	if _, err := ParseGreeting(g.Encode()); err != nil {
		t.Errorf("a greeting without padding: %v", err)
	}
	expect.Is(t, "a greeting without its last byte", expect.Err(ParseGreeting(g.Encode()[:GreetingLen-1])), ErrPeer)
}

// A greeting is refused that names a queue pair beyond the last, an arena that wraps or has
// nothing, or bits that do not exist.
func TestMalformedGreetings(t *testing.T) {
	good := Greeting{Link: 3, Links: 4, Base: 1<<64 - 8, Size: 7}
	if got, err := ParseGreeting(good.Encode()); err != nil || got != good {
		t.Errorf("%+v, %v", got, err)
	}
	for name, bend := range map[string]func(g *Greeting){
		"queue pair":     func(g *Greeting) { g.Link = 4 },
		"no queue pairs": func(g *Greeting) { g.Link, g.Links = 0, 0 },
		"empty arena":    func(g *Greeting) { g.Size = 0 },
		"wraps":          func(g *Greeting) { g.Size = 9 },
	} {
		g := good
		bend(&g)
		expect.Is(t, name, expect.Err(ParseGreeting(g.Encode())), ErrPeer)
	}
	for _, at := range []int{9, 10, 11} {
		b := good.Encode()
		b[at] = 2
		expect.Is(t, fmt.Sprintf("byte %d", at), expect.Err(ParseGreeting(b)), ErrPeer)
	}
}
