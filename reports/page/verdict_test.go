package page

import (
	"fmt"
	"strings"
	"testing"

	"github.com/rdmaperf/rdmaperf/reports"
)

// However many stacks win and whatever they are called, the headline stays one
// sentence, and everything is counted.
func TestHeadlineIsShort(t *testing.T) {
	stacks := make([]string, 9)
	wins := map[string]int{}
	for i := range stacks {
		stacks[i] = fmt.Sprintf("grpc(fused,bpev,busy=%dus,pollers=1,idle=1ms,ring=256K,watch)+iwarp(crc)", i)
	}
	set := &reports.Set{Order: stacks, Short: reports.ShortNames(stacks, make([]string, len(stacks))), Samples: []*reports.Measured{{}}}
	for i, n := range []int{2, 7, 0, 3, 1} {
		wins[stacks[i]] = n
		contests := 0
		for _, n := range wins {
			contests += n
		}
		h := headline(set, wins, contests, nil)
		if len([]rune(h)) > 2*reports.NameRoom+60 {
			t.Errorf("%d characters: %s", len([]rune(h)), h)
		}
		if i == 4 && (!strings.HasPrefix(h, set.Short[1]+" is fastest in 7 of 13 comparisons; "+set.Short[3]+" in 3; 2 others in 3.")) {
			t.Errorf("%s", h)
		}
	}
	var cases []CaseResult
	for i := range 20 {
		cases = append(cases, CaseResult{ID: "a", Transport: fmt.Sprintf("%s %d", stacks[0], i)})
	}
	if h := headline(&reports.Set{}, nil, 0, cases); len([]rune(h)) > 2*reports.NameRoom+60 {
		t.Errorf("conformance: %d characters: %s", len([]rune(h)), h)
	}
}
