package claims

import (
	"context"
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
