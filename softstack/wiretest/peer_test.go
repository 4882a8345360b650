package wiretest

import (
	"io"
	"testing"
	"time"

	"github.com/rdmaperf/rdmaperf/softstack/mpa"
	"github.com/rdmaperf/rdmaperf/softstack/rdmap"
)

const timeout = 20 * time.Second

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func join(t *testing.T, markers bool, mulpdu int) (a, b *Peer, p *Proxy) {
	t.Helper()
	s, err := Listen(timeout)
	must(t, err)
	defer s.Close()
	addr := s.Addr()
	if mulpdu >= 0 {
		p, err = NewProxy(addr, mulpdu, timeout)
		must(t, err)
		addr = p.Addr()
	}
	a, err = Dial(addr, timeout)
	must(t, err)
	b, err = s.Accept()
	must(t, err)
	t.Cleanup(func() { a.Close(); b.Close() })
	done := make(chan error, 1)
	go func() {
		_, err := b.Respond(&mpa.Frame{Reply: true, Rev: 2, CRC: true, Markers: markers, Enhanced: true,
			Enh: mpa.Enhanced{IRD: 1, ORD: 1}})
		done <- err
	}()
	_, err = a.Initiate(&mpa.Frame{Rev: 2, Markers: markers, Enhanced: true, Enh: mpa.Enhanced{IRD: 1, ORD: 1}})
	must(t, err)
	must(t, <-done)
	return a, b, p
}

func TestPeersUnderstandEachOther(t *testing.T) {
	for _, markers := range []bool{false, true} {
		a, b, _ := join(t, markers, -1)
		must(t, a.Send(Send(1, []byte("one")), Write(1, 2, payload(900))))
		must(t, a.Dribble(1, a.Encode(Send(2, []byte("two")))))
		for _, want := range []rdmap.Opcode{rdmap.OpSend, rdmap.OpWrite, rdmap.OpSend} {
			f, err := b.Next()
			must(t, err)
			if f.Op() != want {
				t.Errorf("got %v, want %v", f, want)
			}
		}
		must(t, b.Send(TerminateCode(rdmap.TermOpcode)))
		must(t, b.CloseWrite())
		end := a.Finish()
		if codes := end.Terminates(); end.Kind != EndFIN || len(codes) != 1 || codes[0] != rdmap.TermOpcode {
			t.Errorf("end %v with %v", end.Kind, codes)
		}
		oneFault(t, "both", append(a.Check.Faults(), b.Check.Faults()...), "")
	}
}

func TestFinishTellsTheEnds(t *testing.T) {
	for want, act := range map[EndKind]func(*Peer){
		EndFIN:     func(p *Peer) { p.CloseWrite() },
		EndCut:     func(p *Peer) { p.Send(Send(1, payload(30)).Cut(11)); p.CloseWrite() },
		EndReset:   func(p *Peer) { p.Reset() },
		EndTimeout: func(*Peer) {},
	} {
		a, b, _ := join(t, false, -1)
		b.Timeout = 100 * time.Millisecond
		if want != EndTimeout {
			b.Timeout = timeout
		}
		act(a)
		if end := b.Finish(); end.Kind != want {
			t.Errorf("end %v, want %v", end.Kind, want)
		}
	}
}

func TestQuiet(t *testing.T) {
	a, b, _ := join(t, false, -1)
	must(t, b.Quiet(10*time.Millisecond))
	must(t, a.Send(Send(1, nil)))
	if err := b.Quiet(timeout); err == nil {
		t.Error("an octet arrived and Quiet did not say so")
	}
	if f, err := b.Next(); err != nil || f.Op() != rdmap.OpSend {
		t.Errorf("after Quiet: %v, %v", f, err)
	}
}

func TestProxyPassesOnAndChecks(t *testing.T) {
	for _, c := range []struct {
		name   string
		fault  string
		script func(a, b *Peer)
	}{
		{"clean", "", func(a, b *Peer) {
			a.Send(Send(1, []byte("x")), read(1, 2))
			b.Next()
			b.Next()
			b.Send(ReadResponse(7, 1000, payload(2)), Send(1, nil))
			a.Next()
			a.Send(read(2, 2))
		}},
		{"responder first", "responder spoke first", func(a, b *Peer) { b.Send(Send(1, nil)) }},
		{"ord from the frames", "2 reads outstanding, ord 1", func(a, b *Peer) { a.Send(read(1, 2), read(2, 2)) }},
		{"mulpdu", "mulpdu 300", func(a, b *Peer) { a.Send(Send(1, payload(283))) }},
		{"crc", "crc", func(a, b *Peer) { a.Send(Send(1, nil).BadCRC()) }},
	} {
		a, b, p := join(t, true, 300)
		c.script(a, b)
		must(t, a.CloseWrite())
		if end := b.Finish(); end.Kind != EndFIN {
			t.Errorf("%s: the responder saw %v", c.name, end.Kind)
		}
		must(t, b.CloseWrite())
		if end := a.Finish(); end.Kind != EndFIN {
			t.Errorf("%s: the initiator saw %v", c.name, end.Kind)
		}
		if n, m := p.FPDUs(); n+m == 0 {
			t.Errorf("%s: the proxy saw nothing", c.name)
		}
		oneFault(t, c.name, p.Close(), c.fault)
	}
}

func TestProxyPassesOnResets(t *testing.T) {
	a, b, p := join(t, false, 0)
	must(t, a.Send(Send(1, nil)))
	_, err := b.Next()
	must(t, err)
	must(t, a.Reset())
	if end := b.Finish(); end.Kind != EndReset {
		t.Errorf("end %v, want a reset", end.Kind)
	}
	oneFault(t, "reset", p.Close(), "")
}

func TestStartupOverrides(t *testing.T) {
	s := Startup{Key: RequestKey, Flags: FlagC | FlagS, Rev: 2, PDLen: -1, Private: EnhancedWords(1, 1)}
	for _, v := range Vectors() {
		if v.Name == "V2" && string(s.Bytes()) != string(v.Bytes) {
			t.Errorf("%x, want %x", s.Bytes(), v.Bytes)
		}
	}
	s.PDLen = 513
	if b := s.Bytes(); b[18] != 2 || b[19] != 1 || len(b) != 24 {
		t.Errorf("%x", b)
	}
	a, b, _ := join(t, false, -1)
	must(t, a.WriteStartup(s))
	if _, err := b.ReadStartup(); err == nil || err == io.EOF {
		t.Errorf("PD_Length 513: %v", err)
	}
}
