package reports

import (
	"fmt"
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
		{"one that fits has all its parameters", []string{"iwarp(crc)"}, []string{"iwarp"}, []string{"iwarp(crc)"}},
		{"a long one is called as it was asked for", []string{plain, dropin}, []string{"grpc(tcp)", "grpc(dropin,ring=512K,send=128K)+iwarp"}, []string{plain, "grpc(dropin,ring=512K,send=128K)+iwarp"}},
		{"or is cut", []string{dropin}, []string{""}, []string{"grpc(dropin,bpev,bu…28K,watch)+iwarp(crc)"}},
		{"those that a cut makes equal have numbers", []string{plain, one, two}, []string{"", "", ""}, []string{plain, "grpc(fused,bpev,bu…K,watch)+iwarp(crc) #2", "grpc(fused,bpev,bu…K,watch)+iwarp(crc) #3"}},
		{"and those that were asked for alike", []string{one, two}, []string{"grpc(fused)+iwarp", "grpc(fused)+iwarp"}, []string{"grpc(fused)+iwarp #1", "grpc(fused)+iwarp #2"}},
	} {
		got := shortNames(c.full, c.asked)
		for i, name := range got {
			if n := len([]rune(name)); n > nameRoom {
				t.Errorf("%s: %q has %d characters, want at most %d", c.what, name, n, nameRoom)
			}
			if slices.Index(got, name) != i {
				t.Errorf("%s: two are called %q", c.what, name)
			}
			// How a cut falls is not the claim; what is not cut is.
			if want := c.want[i]; name != want && !strings.Contains(want, "…") {
				t.Errorf("%s: %q, want %q", c.what, name, want)
			}
		}
	}
}

// However many stacks win and whatever they are called, the headline stays one
// sentence, and everything is counted.
func TestHeadlineIsShort(t *testing.T) {
	stacks := make([]string, 9)
	wins := map[string]int{}
	for i := range stacks {
		stacks[i] = fmt.Sprintf("grpc(fused,bpev,busy=%dus,pollers=1,idle=1ms,ring=256K,watch)+iwarp(crc)", i)
	}
	set := &sampleSet{order: stacks, short: shortNames(stacks, make([]string, len(stacks))), samples: []*sample{{}}}
	for i, n := range []int{2, 7, 0, 3, 1} {
		wins[stacks[i]] = n
		contests := 0
		for _, n := range wins {
			contests += n
		}
		h := headline(set, wins, contests, nil)
		if len([]rune(h)) > 2*nameRoom+60 {
			t.Errorf("%d characters: %s", len([]rune(h)), h)
		}
		if i == 4 && (!strings.HasPrefix(h, set.short[1]+" is fastest in 7 of 13 comparisons; "+set.short[3]+" in 3; 2 others in 3.")) {
			t.Errorf("%s", h)
		}
	}
	var cases []CaseResult
	for i := range 20 {
		cases = append(cases, CaseResult{ID: "a", Transport: fmt.Sprintf("%s %d", stacks[0], i)})
	}
	if h := headline(&sampleSet{}, nil, 0, cases); len([]rune(h)) > 2*nameRoom+60 {
		t.Errorf("conformance: %d characters: %s", len([]rune(h)), h)
	}
}

func TestLinesBreakBetweenParameters(t *testing.T) {
	for in, want := range map[string]string{
		"sched(drr,slice=16K)+iwarp(crc) is fastest, <b>": "sched(drr,<wbr/>slice=16K)<wbr/>+iwarp(crc) is fastest, &lt;b&gt;",
		"": "",
	} {
		if got := breakable(in); string(got) != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}
