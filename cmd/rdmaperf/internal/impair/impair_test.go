package impair

import (
	"bytes"
	"io"
	"net"
	"os"
	"testing"
	"time"
)

// TestAPacketIsLostDoubledOrOvertakenByTheSeed: the same seed does the same, and what is not lost arrives.
func TestAPacketIsLostDoubledOrOvertakenByTheSeed(t *testing.T) {
	c := Config{Loss: 0.1, Duplicate: 0.1, Reorder: 0.1, Seed: 5}
	a, b := newProxy(c, 0), newProxy(c, 0)
	var seen [256]int
	inverted, last := 0, -1
	for i := range 250 {
		outA, n := a.pass([]byte{byte(i)})
		outB, m := b.pass([]byte{byte(i)})
		if n != m {
			t.Fatalf("packet %d: %d and %d leave of one seed", i, n, m)
		}
		for k := range n {
			if !bytes.Equal(outA[k], outB[k]) {
				t.Fatalf("packet %d: %v and %v", i, outA[k], outB[k])
			}
			v := int(outA[k][0])
			seen[v]++
			if v < last {
				inverted++
			}
			last = v
		}
	}
	missing, twice := 0, 0
	for i := range 250 {
		switch seen[i] {
		case 0:
			missing++
		case 2:
			twice++
		}
	}
	lost, held := int(a.lost.Load()), 0
	if a.held != nil {
		held = 1
	}
	if lost == 0 || missing != lost+held || twice != int(a.duplicated.Load()) || twice == 0 || inverted == 0 ||
		int(a.reordered.Load()) < inverted {
		t.Errorf("lost %d, missing %d, held %d, twice %d of %d, %d inversions of %d", lost, missing, held, twice,
			a.duplicated.Load(), inverted, a.reordered.Load())
	}
}

// TestTCPIsExactOverABadPath through two namespaces.
func TestTCPIsExactOverABadPath(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("namespaces and TUN devices need root")
	}
	p, err := Open(Config{Loss: 0.01, Duplicate: 0.01, Reorder: 0.01, Delay: time.Millisecond, Seed: 3})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	hold := make(chan struct{})
	defer close(hold)
	var l net.Listener
	if err := p.In(0, hold, func() (err error) {
		l, err = net.Listen("tcp", Addresses[0]+":0")
		return err
	}); err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	got := make(chan []byte, 1)
	go func() {
		c, err := l.Accept()
		if err != nil {
			got <- nil
			return
		}
		defer c.Close()
		c.SetDeadline(time.Now().Add(60 * time.Second))
		b, _ := io.ReadAll(c)
		got <- b
	}()
	var c net.Conn
	if err := p.In(1, hold, func() (err error) {
		c, err = net.DialTimeout("tcp", l.Addr().String(), 20*time.Second)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	msg := make([]byte, 512<<10)
	for i := range msg {
		msg[i] = byte(i * 7 >> 3)
	}
	c.SetDeadline(time.Now().Add(60 * time.Second))
	if _, err := c.Write(msg); err != nil {
		t.Fatal(err)
	}
	c.Close()
	if b := <-got; !bytes.Equal(b, msg) {
		t.Errorf("%d of %d bytes, or others", len(b), len(msg))
	}
	if n := p.Counts(); n.Lost == 0 || n.Duplicated == 0 || n.Reordered == 0 || n.Packets < 300 {
		t.Errorf("%+v", n)
	}
}
