package claims

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"
)

// A curve has the paper's points beside the medians of here, and a dash where nothing was measured.
func TestCurves(t *testing.T) {
	c := Curve{"us by bytes", "size", []string{"64", "1000"}, 1e3, []Line{
		{"a", []string{"3.59", "5.3"}, At{run1, "p50", "a", ""}},
		{Name: "RNIC", Published: []string{"1", "2"}},
		{Name: "c", Here: At{run1, "p50", "c", ""}},
	}}
	all := map[string]series{"a size=64": rounds(9, 0, between(2000, 4000)), "c size=1000": rounds(9, 0, constant(7e3))}
	got := c.table(of(all))
	want := [][]string{{"a, published", "3.59", "5.3"}, {"a, here", "2", "-"}, {"RNIC, published", "1", "2"},
		{"c, here", "-", "7"}}
	if !slices.EqualFunc(got.Rows, want, func(a, b []string) bool { return slices.Equal(a, b) }) {
		t.Errorf("%q, want %q", got.Rows, want)
	}
	if text := got.text("  "); !strings.Contains(text, "    a, here             2     -\n") {
		t.Errorf("columns are not aligned:\n%s", text)
	}
	if md := got.markdown(); !strings.Contains(md, "\n| size | 64 | 1000 |\n|---|--:|--:|\n| a, published | 3.59 | 5.3 |\n") {
		t.Errorf("not a table:\n%s", md)
	}
}

// Every line of a curve in papers has a value for each point, and a run that has its stack.
func TestCurvesOfPapers(t *testing.T) {
	for _, p := range All {
		for _, c := range p.Claims {
			for _, curve := range c.Curves {
				for _, l := range curve.Lines {
					if l.Published != nil && len(l.Published) != len(curve.Points) {
						t.Errorf("%s, %s: %d values for %d points", c.ID, l.Name, len(l.Published), len(curve.Points))
					}
					if l.Here.Run != nil && !strings.Contains(l.Here.Run.Args, l.Here.Stack) || l.Published == nil && l.Here.Run == nil {
						t.Errorf("%s, %s: no run has %q", c.ID, l.Name, l.Here.Stack)
					}
				}
			}
		}
	}
}

// A quick run leaves time for those behind it: twice its share, and by turns its share.
func TestShares(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
	defer cancel()
	plain, turns, last := &Run{Args: "a"}, &Run{Args: "b", Beside: []*tool{pMPI}}, &Run{Args: "c"}
	n := &runner{left: []*Run{plain, turns, last, {Args: "d"}}}
	for _, c := range []struct {
		run  *Run
		want time.Duration
	}{{plain, 30 * time.Minute}, {turns, 20 * time.Minute}, {last, time.Hour}} {
		got, end := n.share(ctx, c.run)
		deadline, _ := got.Deadline()
		if left := time.Until(deadline); left > c.want || left < c.want-time.Second {
			t.Errorf("%s: %v, want %v", c.run.Args, left, c.want)
		}
		end()
	}
	if got, end := n.share(context.Background(), last); got != context.Background() {
		end()
		t.Error("a full run has a share")
	}
}
