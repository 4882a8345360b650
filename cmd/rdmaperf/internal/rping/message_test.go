package rping

import (
	"bytes"
	"encoding/hex"
	"errors"
	"testing"

	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// The layout is struct rping_rdma_info of librdmacm/examples/rping.c.
func TestAdvertIsSixteenBigEndianBytes(t *testing.T) {
	a := Advert{Addr: 0x0000_7f12_3456_789a, RKey: 0xdeadbeef, Size: 65000}
	var b [AdvertLen]byte
	a.put(b[:])
	if got, want := hex.EncodeToString(b[:]), "00007f123456789adeadbeef0000fde8"; got != want {
		t.Errorf("message = %s, want %s", got, want)
	}
	back, err := ParseAdvert(b[:])
	if err != nil || back != a {
		t.Errorf("ParseAdvert = %+v, %v, want %+v", back, err, a)
	}
}

func TestAdvertOfAnotherLengthIsMalformed(t *testing.T) {
	for _, n := range []int{0, 1, 15, 17, 64} {
		_, err := ParseAdvert(make([]byte, n))
		var bad *MalformedError
		if !errors.As(err, &bad) || !errors.Is(err, rdma.ErrProtocol) {
			t.Errorf("ParseAdvert(%d bytes) = %v, want malformed", n, err)
		}
	}
}

func FuzzParseAdvert(f *testing.F) {
	f.Add([]byte{})
	f.Add(make([]byte, AdvertLen))
	f.Add(bytes.Repeat([]byte{0xff}, AdvertLen))
	f.Add(make([]byte, AdvertLen+1))
	f.Fuzz(func(t *testing.T, b []byte) {
		a, err := ParseAdvert(b)
		if (err == nil) != (len(b) == AdvertLen) {
			t.Fatalf("ParseAdvert(%d bytes) = %v", len(b), err)
		}
		if err != nil {
			return
		}
		var back [AdvertLen]byte
		a.put(back[:])
		if !bytes.Equal(back[:], b) {
			t.Fatalf("%x came back as %x", b, back)
		}
	})
}

// The expected strings follow rping's loop: text by format, then the characters
// from 65+ping up to 122 and round again, NUL in the last byte.
func TestFillWritesRpingsPattern(t *testing.T) {
	for _, c := range []struct {
		ping, size int
		want       string
	}{
		{0, 26, "rdma-ping-0: ABCDEFGHIJKL\x00"},
		{1, 30, "rdma-ping-1: BCDEFGHIJKLMNOPQ\x00"},
		{56, 26, "rdma-ping-56: yzABCDEFGHI\x00"},
		{57, 26, "rdma-ping-57: zABCDEFGHIJ\x00"},
		{58, 26, "rdma-ping-58: ABCDEFGHIJK\x00"},
		{2147483647, 26, "rdma-ping-2147483647: HIJ\x00"},
	} {
		got := bytes.Repeat([]byte{0xee}, c.size)
		Fill(got, c.ping)
		if string(got) != c.want {
			t.Errorf("Fill(%d bytes, ping %d) = %q, want %q", c.size, c.ping, got, c.want)
		}
	}
}

func TestFillAllocatesNothing(t *testing.T) {
	buf := make([]byte, MaxSize)
	if n := testing.AllocsPerRun(20, func() { Fill(buf, 1<<31-1) }); n != 0 {
		t.Errorf("Fill allocates %v times, want 0", n)
	}
	if bytes.IndexByte(buf, 0) != len(buf)-1 {
		t.Error("the ping has a NUL before its last byte: rping would stop there")
	}
}
