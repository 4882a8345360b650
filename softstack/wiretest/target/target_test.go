package target

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/rdmaperf/rdmaperf/softstack/iwarp"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

const testWait = 10 * time.Second

func start(t *testing.T, change func(*Config)) (addr string) {
	t.Helper()
	c := Config{Transport: "iwarp", Variants: []string{"markers"}, Log: slog.New(slog.NewTextHandler(io.Discard, nil)),
		Open: func(variant string) (rdma.Device, string, error) {
			if variant != "" && variant != "markers" {
				return nil, "", fmt.Errorf("variant %q: %w", variant, rdma.ErrNotSupported)
			}
			d, err := iwarp.Open(iwarp.Config{Markers: variant != ""})
			return d, "", err
		}}
	if change != nil {
		change(&c)
	}
	l := must(net.Listen("tcp", "127.0.0.1:0"))(t)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- Serve(ctx, l, c) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("serve: %v", err)
		}
	})
	return l.Addr().String()
}

func find(t *testing.T, addr string) *Client {
	t.Helper()
	v := must(Find(addr, testWait, testWait))(t)
	t.Cleanup(func() { v.Close() })
	return v
}

func must[T any](v T, err error) func(*testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func pair(t *testing.T, variant string) (a, b *Client, ra, rb *Ready) {
	t.Helper()
	addr := start(t, nil)
	a, b = find(t, addr), find(t, addr)
	o := Stage{Variant: variant, Recvs: 4, RecvLen: 64, IRD: 4, ORD: 4, WaitMS: 10_000}
	ra = must(a.Stage(o))(t)
	o.Connect, o.Private = ra.Listen, []byte("hello")
	rb = must(b.Stage(o))(t)
	for v, private := range map[*Client]string{a: "hello", b: ""} {
		if j := must(v.Joined(testWait))(t); j.Pending || j.Error != "" || string(j.Private) != private {
			t.Fatalf("joined: %+v", j)
		}
	}
	return a, b, ra, rb
}

func one(t *testing.T, v *Client, id uint64) Completion {
	t.Helper()
	got := must(v.Completions(1, testWait))(t)
	if len(got) != 1 || got[0].ID != id || !got[0].Good() {
		t.Fatalf("completions %+v, want the success of %d", got, id)
	}
	return got[0]
}

func TestTwoTargets(t *testing.T) {
	for _, variant := range []string{"", "markers"} {
		a, b, ra, rb := pair(t, variant)
		want := Canaries()
		// The work region of b goes to the target of a, which sees nothing but its memory.
		to := ra.Regions[AllRights]
		one(t, b, must(b.Post(Post{Op: rdma.OpWrite, Len: 100, STag: to.STag, TO: to.TO + 7}))(t))
		from := rb.Regions[Work]
		copy(want[to.Off+7:], Canaries()[from.Off:from.Off+100])
		// And a message, which needs a receive.
		one(t, b, must(b.Post(Post{Op: rdma.OpSend, Len: 20}))(t))
		if c := one(t, a, 1); c.Len != 20 {
			t.Errorf("receive %+v", c)
		}
		copy(want[ra.Regions[Receives].Off:], Canaries()[from.Off:from.Off+20])
		if got := must(a.Memory(want))(t); got != nil {
			t.Errorf("variant %q: memory is not what was written", variant)
		}
		if got := must(a.Memory(Canaries()))(t); !bytes.Equal(got, want) {
			t.Error("what differs is not returned")
		}
		one(t, b, must(b.Post(Post{Op: rdma.OpFetchAdd, Len: 8, STag: to.STag, TO: to.TO, Value: 3}))(t))
		if s := must(a.State())(t); s != "RTS" {
			t.Errorf("state %q", s)
		}
		// No right: the stream ends, and the rest is flushed.
		quiet := ra.Regions[NoRights]
		must(b.Post(Post{Op: rdma.OpRead, Len: 8, STag: quiet.STag, TO: quiet.TO}))(t)
		if got := must(a.Completions(3, testWait))(t); len(got) != 3 || got[0].Good() || got[0].ID != 2 {
			t.Errorf("flushed: %+v", got)
		}
		if s := must(a.State())(t); s != "ERR" {
			t.Errorf("state %q", s)
		}
		must(a.Stage(Stage{Variant: variant, WaitMS: 1000}))(t)
		if got := must(a.Memory(Canaries()))(t); got != nil {
			t.Error("the next stage finds what the last one left")
		}
	}
}

func TestRegions(t *testing.T) {
	_, _, ra, _ := pair(t, "")
	for _, name := range []string{AllRights, NoRights, Readable, OtherPD, Revocable, Freed, Work, Receives} {
		if r, ok := ra.Regions[name]; !ok || r.Len == 0 || r.Off+r.Len > ra.Arena {
			t.Errorf("%s: %+v", name, r)
		}
	}
}

func TestMistakesAreAnswered(t *testing.T) {
	v := find(t, start(t, nil))
	_, err := v.State()
	if err == nil || !strings.Contains(err.Error(), "no stage") {
		t.Errorf("state without a stage: %v", err)
	}
	if _, err := v.Stage(Stage{Variant: "bent", WaitMS: 1}); !errors.Is(err, ErrUnsupported) {
		t.Errorf("unknown variant: %v", err)
	}
	for _, s := range []Stage{{Recvs: maxRecvs + 1, WaitMS: 1}, {RecvLen: -1, WaitMS: 1}, {IRD: 1000, WaitMS: 1}, {},
		{WaitMS: 1 << 30}} {
		if _, err := v.Stage(s); err == nil {
			t.Errorf("stage %+v was prepared", s)
		}
	}
	must(v.Stage(Stage{WaitMS: 100}))(t)
	if _, err := v.Post(Post{Op: rdma.OpSend}); err == nil {
		t.Error("a post before there is a connection")
	}
	if j := must(v.Joined(testWait))(t); j.Error == "" || j.Pending {
		t.Errorf("nobody came: %+v", j)
	}
	for _, p := range []Post{{Op: 200}, {Len: smallLen + 1}, {Op: rdma.OpLocalInv + 1}} {
		if _, err := v.Post(p); err == nil {
			t.Errorf("%+v was posted", p)
		}
	}
	if _, err := v.ask(&request{Do: "dance"}, 0); err == nil {
		t.Error("an unknown request")
	}
}

func TestOtherPeers(t *testing.T) {
	silent := must(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer silent.Close()
	if _, err := Find(silent.Addr().String(), 20*time.Millisecond, testWait); !errors.Is(err, ErrSilent) {
		t.Errorf("silence: %v", err)
	}
	addr := start(t, func(c *Config) { c.MaxClients = 2 })
	v := find(t, addr)
	for _, rubbish := range []string{"MPA ID Req Frame\x10\x02\n", "{}\n", "[]\n", strings.Repeat("x", 2*maxRequest),
		`{"do":"stage"}` + "\n"} {
		c := must(net.Dial("tcp", addr))(t)
		in := bufio.NewReader(c)
		c.SetDeadline(time.Now().Add(testWait))
		if _, err := in.ReadString('\n'); err != nil {
			t.Fatalf("no greeting: %v", err)
		}
		c.Write([]byte(rubbish))
		c.(*net.TCPConn).CloseWrite()
		io.Copy(io.Discard, in)
		c.Close()
	}
	must(v.Stage(Stage{WaitMS: 100}))(t)
	// Both places are taken: the next one is turned away.
	find(t, addr)
	if _, err := Find(addr, testWait, testWait); err == nil {
		t.Error("a third of two")
	}
	closed := start(t, func(c *Config) { c.Allow = func(netip.Addr) bool { return false } })
	if _, err := Find(closed, testWait, testWait); err == nil {
		t.Error("somebody who may not come was greeted")
	}
}

func FuzzRequest(f *testing.F) {
	for _, s := range []string{`{"do":"stage","stage":{"recvs":1,"wait_ms":1}}`,
		`{"do":"completions","n":1,"wait_ms":1}`, `{"do":"memory"}`, `{"do":"post","post":[{"op":3,"len":9}]}`,
		`{"do":"store","off":-1,"data":"AAAA"}`, `{"do":"joined","wait_ms":-5}`, `{`} {
		f.Add([]byte(s))
	}
	c := Config{Open: func(string) (rdma.Device, string, error) {
		d, err := iwarp.Open(iwarp.Config{})
		return d, "127.0.0.1", err
	}}
	ours, theirs := net.Pipe()
	defer ours.Close()
	defer theirs.Close()
	s := &session{cfg: &c, conn: pipeWithAddr{ours}, devices: map[string]*bench{}}
	ctx, cancel := context.WithCancel(context.Background())
	f.Cleanup(func() {
		cancel()
		s.endStage()
		for _, b := range s.devices {
			b.close()
		}
	})
	f.Fuzz(func(t *testing.T, line []byte) {
		var q request
		if json.Unmarshal(line, &q) != nil {
			return
		}
		q.WaitMS = min(q.WaitMS, 1)
		if q.Stage != nil {
			q.Stage.WaitMS, q.Stage.Connect = min(q.Stage.WaitMS, 1), "" // no other host
		}
		r, err := s.do(ctx, &q)
		if r == nil && err == nil && q.Do != doPost {
			t.Errorf("%s is not answered", line)
		}
	})
}

type pipeWithAddr struct{ net.Conn }

func (pipeWithAddr) LocalAddr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)} }
