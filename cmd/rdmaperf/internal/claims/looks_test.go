package claims

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/answer"
)

// The looks at all rules of a paper share 5 %, and each has an interval at its level.
func TestLooksShareTheLevel(t *testing.T) {
	for _, p := range All {
		for _, quick := range []bool{true, false} {
			x, m := p.plan(quick), 0
			for _, c := range p.Claims {
				for _, r := range c.Rules {
					if r.bounded() && !r.exact && c.Needs.lacks() == "" {
						m += len(r.terms)
					}
				}
			}
			if wrong := (1 - x.level) * float64(m*len(x.rounds)); wrong > 0.05+1e-9 {
				t.Errorf("%s: all together are wrong with %v", p.Name, wrong)
			}
			if x.rounds[0] != answer.RoundsFor(x.level) {
				t.Errorf("%s: %v rounds at level %v", p.Name, x.rounds, x.level)
			}
		}
	}
}

// A rule that the first look leaves undecided has further rounds, with those it had; one that is decided has none, and
// what needs no rounds is first.
func TestFurtherLooks(t *testing.T) {
	const writes = `echo "$*" >>"$0.ran"
case $1 in order) exit;; esac
while [ $# -gt 0 ]; do case $1 in --rounds) n=$2;; --json) f=$2;; esac; shift; done
is='"label":"soft","workload":"throughput","op":"write","size_bytes":64'
{ printf '{"schema":"rdmaperf/v1","results":['
for i in $(seq "$n"); do
  v=300; [ "$i" != 1 ] || v=900
  printf '{"transport":"b",%s,"repeat":%s,"throughput":{"bytes_per_second":1000}},' "$is" "$i"
  printf '{"transport":"c",%s,"repeat":%s,"throughput":{"bytes_per_second":100}},' "$is" "$i"
  printf '{"transport":"a",%s,"repeat":%s,"throughput":{"bytes_per_second":%s}}' "$is" "$i" "$v"
  [ "$i" = "$n" ] || printf ,
done
printf ']}'; } >"$f"`
	run := &Run{Args: "run", Slice: time.Millisecond}
	claim := &Claim{ID: "X1", Rules: []Rule{
		Ratio("scattered", At{run, "bw", "a", ""}, At{run, "bw", "b", ""}).AtMost(0.5).Against(At{Stack: "b"}),
		Ratio("clear", At{run, "bw", "c", ""}, At{run, "bw", "b", ""}).AtMost(0.5).Against(At{Stack: "b"}),
		Pass("order", &Run{Args: "order"}),
	}}
	n := script(t, writes)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	paper := Paper{Claims: []Claim{*claim}}
	x := paper.plan(true)
	first := n.look(ctx, run, x.rounds[0])
	if f := claim.Rules[0].judge(n.upTo(x.rounds[0]), x.level); f.Verdict != Undecided || f.more == 0 {
		t.Fatalf("the first look: %+v, %v", f, first.err)
	}
	out := n.looks(ctx, []*Claim{claim}, x)[0]
	if out.Verdict != Shown || !strings.Contains(out.Findings[0].Text, "scattered: 0.3x (0.3 to 0.3x)") {
		t.Errorf("%+v", out)
	}
	if first.rounds != x.rounds[1] || len(first.lines) != 2 {
		t.Errorf("%d rounds by %q", first.rounds, first.lines)
	}
	if n.left = nil; len(runsOf([]*Claim{claim})) != 2 || runsOf([]*Claim{claim})[0].Args != "order" {
		t.Errorf("%v", runsOf([]*Claim{claim}))
	}
}

// Without time a rule stays undecided, and no run is begun that would not end.
func TestLooksEndInTime(t *testing.T) {
	run := &Run{Args: "run", Slice: time.Millisecond}
	n := script(t, "exit 1")
	n.ran["run"] = &outcome{rounds: 6, took: time.Hour}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	f := &Finding{Verdict: Undecided, more: 1}
	todo := []open{{Ratio("r", At{run, "bw", "a", ""}, At{run, "bw", "b", ""}), f}}
	still := n.further(ctx, todo, plan{rounds: []int{6, 18}, level: 0.9}, 1, time.Now())
	if len(still) != 1 || len(n.made) != 0 {
		t.Errorf("%d left, %v", len(still), n.made)
	}
}

// A curve has the paper's points beside the medians of here, and a dash where nothing was measured.
func TestCurves(t *testing.T) {
	c := Curve{"us by bytes", "size", []string{"64", "1000"}, 1e3, []Line{
		{"a", []string{"3.59", "5.3"}, At{run1, "p50", "a", ""}, nil},
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
	stacks := Curve{"us by window", "window", []string{"1K"}, 1,
		[]Line{{Name: "p50", Here: At{run1, "p50", "a(w=%)+b", ""}}}}
	if t1 := stacks.table(of(map[string]series{"a(w=1K)+b": rounds(9, 0, constant(3))})); t1.Rows[0][1] != "3" {
		t.Errorf("%q", t1.Rows)
	}
	if text := got.text("  "); !strings.Contains(text, "    a, here             2     -\n") {
		t.Errorf("columns are not aligned:\n%s", text)
	}
	if md := got.markdown(); !strings.Contains(md, "\n| size | 64 | 1000 |\n|---|--:|--:|\n| a, published | 3.59 | 5.3 "+
		"|\n") {
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
					for _, p := range curve.Points {
						at := curve.at(l, p)
						if at.Run != nil && !strings.Contains(at.Run.Args, at.Stack) || l.Published == nil && at.Run == nil {
							t.Errorf("%s, %s: no run has %q", c.ID, l.Name, at.Stack)
						}
					}
				}
			}
		}
	}
}

// The first look at a run leaves time for those behind it.
func TestShares(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
	defer cancel()
	n := &runner{left: make([]*Run, 8)}
	for _, want := range []time.Duration{22*time.Minute + 30*time.Second, 25*time.Minute + 43*time.Second} {
		got, end := n.share(ctx, &Run{Round: "-n 1"})
		deadline, _ := got.Deadline()
		if left := time.Until(deadline); left > want || left < want-time.Second {
			t.Errorf("%v, want %v", left, want)
		}
		end()
	}
	if got, _ := n.share(ctx, &Run{}); got != ctx {
		t.Error("a run without rounds is ended early")
	}
	n.left = make([]*Run, 1)
	if got, _ := n.share(ctx, &Run{Round: "-n 1"}); got != ctx {
		t.Error("the last run is ended early")
	}
}

// The page draws a curve with what was published and what was measured on the same axes, and the index has a line for
// each paper.
func TestPagesDrawCurves(t *testing.T) {
	r := &Report{Paper: "p", Title: "A paper", Claims: []Outcome{{ID: "X1", Says: "a.", Verdict: Shown, Tables: []Table{{
		What: "us by bytes", Head: []string{"size", "64", "1K"},
		Rows: [][]string{{"a, published", "3", "5"}, {"a, here", "2", "-"}}}}}}}
	var b strings.Builder
	if err := r.WriteHTML(&b); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`<svg `, `class="se s0 thin"`, `data-name="a, here"`, "a, here, 64: 2"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	if strings.Contains(b.String(), "a, here, 1K") {
		t.Error("a point that was not measured is drawn")
	}
	b.Reset()
	if err := WriteIndex(&b, []*Report{r}); err != nil || !strings.Contains(b.String(),
		"- [A paper](p.md): of 1 claim 1 shown\n") {
		t.Errorf("%v: %s", err, b.String())
	}
}
