package reports

import (
	"slices"
	"strings"
	"testing"
)

func TestShortNames(t *testing.T) {
	const (
		plain  = "grpc(tcp)"
		dropin = "grpc(dropin,bpev,busy=200us,pollers=1,idle=1ms,ring=512K,send=128K,watch)+iwarp(crc)"
		one    = "grpc(fused,bpev,busy=5us,pollers=1,idle=1ms,ring=256K,watch)+iwarp(crc)"
		two    = "grpc(fused,bpev,busy=5us,pollers=2,idle=1ms,ring=256K,watch)+iwarp(crc)"
	)
	for _, c := range []struct {
		what              string
		full, asked, want []string
	}{
		{"one is called as it was asked for", []string{"iwarp(crc)"}, []string{"iwarp"}, []string{"iwarp"}},
		{"a long one is, too", []string{plain, dropin},
			[]string{"grpc(tcp)", "grpc(dropin,ring=512K,send=128K)+iwarp"},
			[]string{plain, "grpc(dropin,ring=512K,send=128K)+iwarp"}},
		{"what was asked for is no help when it is as long", []string{strings.Repeat("a", 45)},
			[]string{strings.Repeat("b", 45)}, []string{"aaa…"}},
		{"or is cut", []string{dropin}, []string{""}, []string{"grpc(dropin,bpev,bu…28K,watch)+iwarp(crc)"}},
		{"those that a cut makes equal have numbers", []string{plain, one, two}, []string{"", "", ""},
			[]string{plain, "grpc(fused,bpev,bu…K,watch)+iwarp(crc) #2", "grpc(fused,bpev,bu…K,watch)+iwarp(crc) #3"}},
		{"and those that were asked for alike", []string{one, two}, []string{"grpc(fused)+iwarp", "grpc(fused)+iwarp"},
			[]string{"grpc(fused)+iwarp #1", "grpc(fused)+iwarp #2"}},
	} {
		got := ShortNames(c.full, c.asked)
		for i, name := range got {
			if n := len([]rune(name)); n > NameRoom {
				t.Errorf("%s: %q has %d characters, want at most %d", c.what, name, n, NameRoom)
			}
			if slices.Index(got, name) != i {
				t.Errorf("%s: two are called %q", c.what, name)
			}
			// How a cut falls is not the claim; what is not cut is.
			if want := c.want[i]; name != want && (!strings.Contains(want, "…") || name[:3] != want[:3]) {
				t.Errorf("%s: %q, want %q", c.what, name, want)
			}
		}
	}
}

// Documents that the shell found in directories by time are told apart by these.
func TestDocumentNames(t *testing.T) {
	for _, c := range []struct {
		files, want []string
	}{
		{[]string{""}, []string{""}},
		{[]string{"x/result.json"}, []string{"result.json"}},
		{[]string{"", "b/new.json"}, []string{"run 1", "new.json"}},
		{[]string{"r/1/result.json", "r/2/result.json", "base.json"}, []string{"1/result.json", "2/result.json",
			"base.json"}},
		{[]string{"/a/x/result.json", "/b/x/result.json"}, []string{"a/x/result.json", "b/x/result.json"}},
		{[]string{"/a/1/2/3/4/5/6/r.json", "/b/1/2/3/4/5/6/r.json"},
			[]string{"a/1/2/3/4/5/6/r.json", "b/1/2/3/4/5/6/r.json"}},
		{[]string{"r.json", "./r.json"}, []string{"r.json", "r.json (2)"}},
	} {
		if got := documentNames(c.files, len(c.files)); !slices.Equal(got, c.want) {
			t.Errorf("%q: %q, want %q", c.files, got, c.want)
		}
	}
}

func TestLayersOfAStack(t *testing.T) {
	for stack, want := range map[string]int{"tcp": 1, "sched+iwarp": 2, "grpc(fused)+sched(window=1M)+verbs:rxe0": 3,
		"lite(k=4)+model(link=a+b)+mem": 3} {
		if got := Layers(stack); len(got) != want {
			t.Errorf("%s has the layers %q", stack, got)
		}
	}
}

// Repeats are pooled into all their samples; without the samples of one there is no pool.
func TestPooledHasTheSamplesOfAll(t *testing.T) {
	one, other := record(1000, 2000).Snapshot(), record(9000, 9000).Snapshot()
	if h := Pooled([]*Latency{&one, &other}); h == nil || h.TotalCount() != 4 {
		t.Errorf("%v, want 4 samples", h)
	}
	if h := Pooled([]*Latency{&one, {Count: 1, P50: 9}}); h != nil {
		t.Errorf("%d samples pooled of a latency that has none", h.TotalCount())
	}
}

// A stack of two documents at the same place is two series; an older document has the full name alone.
func TestShortNamesKeepDocumentsApart(t *testing.T) {
	long := "iwarp(crc,window=" + strings.Repeat("9", 40) + ")"
	documents := func(transport string) *Set {
		one := func() *Document {
			return &Document{Results: []Result{{Stack: long, Transport: transport,
				Workload: "latency", Op: "send", SizeBytes: 64, Depth: 1, QPs: 1, Latency: &Latency{Count: 10}}}}
		}
		return NewSet([]*Document{one(), one()}, []string{"a.json", "b.json"})
	}
	if s := documents("iwarp"); !slices.Equal(s.Short, []string{"iwarp · a.json", "iwarp · b.json"}) {
		t.Errorf("%q", s.Short)
	}
	for _, name := range documents("").Short {
		if !strings.HasPrefix(name, "iwarp(crc,") {
			t.Errorf("%q is not the stack's name", name)
		}
	}
}
