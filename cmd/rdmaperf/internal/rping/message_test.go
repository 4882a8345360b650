package rping

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"testing"

	"github.com/rdmaperf/rdmaperf/transports/memdev"
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

// A connection behind another registers what its peer gets the key of, and nothing else; and
// what the peer can read is no other's.
func TestMemoryStaysRegistered(t *testing.T) {
	dev := must(memdev.NewFabric(memdev.Config{}).Open("a"))(t)
	m := must(newMemory(dev))(t)
	var keys []uint32
	for range 3 {
		local := must(m.take(ServerSize, rdma.LocalWrite))(t)
		shown := must(m.take(4096, rdma.LocalWrite|rdma.RemoteRead))(t)
		if len(bytes.Trim(shown.buf.Bytes(), "\x00")) > 0 {
			t.Error("a peer may read what belonged to another")
		}
		for _, r := range []registration{local, shown} {
			r.buf.Bytes()[0] = 1
		}
		keys = append(keys, shown.region.RKey())
		check(t, m.give(shown))
		check(t, m.give(local))
	}
	if keys[0] == keys[1] || keys[1] == keys[2] {
		t.Errorf("keys of three peers: %#x", keys)
	}
	if n := m.cache.Counters(); n.MemRegs != 1+3 || n.HitsFast != 2 {
		t.Errorf("%+v", n)
	}
	check(t, m.close())
	check(t, dev.Close())
}

func TestValidationFindsOneWrongByte(t *testing.T) {
	overAll(t, func(t *testing.T, r rig) {
		badServer(t, r, func(e *endpoint, data registration) error {
			if err := answer(e, data, nil, true); err != nil {
				return err
			}
			if err := answer(e, data, func(b []byte) { b[999] ^= 0x40 }, true); err != nil {
				return err
			}
			return awaitEnd(e)
		})
		sum, err := Ping(context.Background(), r.active, ClientConfig{Addr: r.ln.Addr(), Size: 1000, Count: 5,
			Validate: true, Timeout: testTimeout})
		var bad *MismatchError
		if !errors.As(err, &bad) {
			t.Fatalf("Ping = %v, want a mismatch", err)
		}
		if want := (MismatchError{Ping: 1, Offset: 999, Got: 0x40, Want: 0, Wrong: 1, Size: 1000}); *bad != want {
			t.Errorf("mismatch = %+v, want %+v", *bad, want)
		}
		if sum.Pings != 1 {
			t.Errorf("%d pings were good, want 1", sum.Pings)
		}
	})
}

// Between ping 9 and ping 10 the pattern moves by a byte and meets itself, so a
// sink that nobody wrote would look almost right.
func TestValidationFindsAWriteThatNeverCame(t *testing.T) {
	r := providers[0].open(t)
	badServer(t, r, func(e *endpoint, data registration) error {
		for n := range 11 {
			if err := answer(e, data, nil, n < 10); err != nil {
				return err
			}
		}
		return awaitEnd(e)
	})
	_, err := Ping(context.Background(), r.active, ClientConfig{Addr: r.ln.Addr(), Count: 20, Validate: true,
		Timeout: testTimeout})
	var bad *MismatchError
	if !errors.As(err, &bad) || bad.Ping != 10 || bad.Wrong != DefaultSize-1 { // all but the last NUL
		t.Errorf("Ping = %v, want %d wrong bytes in ping 10", err, DefaultSize-1)
	}
}

func TestWithoutValidationNothingIsCompared(t *testing.T) {
	r := providers[0].open(t)
	badServer(t, r, func(e *endpoint, data registration) error {
		if err := answer(e, data, func(b []byte) { clear(b) }, true); err != nil {
			return err
		}
		return awaitEnd(e)
	})
	if _, err := Ping(context.Background(), r.active, ClientConfig{Addr: r.ln.Addr(), Count: 1,
		Timeout: testTimeout}); err != nil {
		t.Errorf("Ping = %v, want nil", err)
	}
}

// A fault of the provider, not of the peer, shows too: it spoils what the read of the second ping fetches. The six
// placements of the first ping and the second's advertisement pass.
func TestValidationFindsAFlippedByteOfTheDevice(t *testing.T) {
	r := memRig(t, memdev.Config{Seed: 1, Faults: map[memdev.Fault]memdev.Trigger{
		memdev.FaultFlipByte: {After: 7, Times: 1},
	}})
	serve(t, r, ServerConfig{})
	_, err := Ping(context.Background(), r.active, ClientConfig{Addr: r.ln.Addr(), Size: 5000, Count: 50,
		Validate: true, Timeout: testTimeout})
	var bad *MismatchError
	if !errors.As(err, &bad) || bad.Ping != 1 || bad.Wrong != 1 {
		t.Errorf("Ping = %v, want one wrong byte in ping 1", err)
	}
}
