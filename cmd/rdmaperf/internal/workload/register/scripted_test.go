package register

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/arms"
	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// What everything takes, ns.
const registers, uses, deregisters = 300, 500, 200

type script struct{}

type scriptedMR struct{ rdma.MR }

func (script) RegMR(rdma.PD, rdma.Buffer, rdma.Access) (rdma.MR, error) {
	time.Sleep(registers)
	return scriptedMR{}, nil
}

func (scriptedMR) LKey() uint32 { return 1 }
func (scriptedMR) RKey() uint32 { return 1 }
func (scriptedMR) Close() error { time.Sleep(deregisters); return nil }

// Every stage takes what it takes, whatever the pattern, and a cycle all of them.
func TestScriptedStages(t *testing.T) {
	const window, cycle = 50_000, registers + uses + deregisters
	for _, p := range []Point{{Pattern: PatternRepeated}, {Pattern: PatternRandom}, {Pattern: PatternOverlapping},
		{Pattern: PatternNew}, {Pattern: PatternSet, Buffers: 4},
		{Pattern: PatternRepeated, Threads: 3, Together: true}} {
		synctest.Test(t, func(t *testing.T) {
			p.Arm, p.Size = arms.None, 8192
			g := &Target{Name: "scripted", Reg: script{}, use: func(uint32, rdma.Buffer, uint64) error {
				time.Sleep(uses)
				return nil
			}}
			d, err := Run(t.Context(), g, p, window, 1)
			must(t, err)
			is := func(what string, l *reports.Latency, want float64) {
				t.Helper()
				if l == nil || l.Count == 0 || l.Min != want || l.P50 != want || l.Mean != want || l.Max != want {
					t.Errorf("%v: %s %+v, want %v", p, what, l, want)
				}
			}
			is("register", d.Register, registers)
			switch {
			case p.Together:
				is("deregister", d.Deregister, deregisters)
				if d.EachNs != registers+deregisters {
					t.Errorf("each %v ns, want %v", d.EachNs, registers+deregisters)
				}
			case p.Pattern == PatternNew:
				is("map", d.Map, 0)
				is("use", d.Use, uses)
				is("use again", d.Again, uses)
				is("deregister", d.Deregister, deregisters)
				is("cycle", d.Full, cycle)
			case p.Pattern == PatternRepeated:
				is("use", d.Use, uses)
				is("deregister", d.Deregister, deregisters)
				is("cycle", d.Full, cycle)
			case p.Pattern != PatternSet:
				is("cycle", d.Full, cycle)
			}
			// Finding the pages, the first batch and the cycles of other patterns are in no operation's time.
			each := time.Duration(registers + deregisters)
			if p.Pattern == PatternNew {
				each = cycle
			}
			if want := each * time.Duration(d.Operations) / time.Duration(d.Threads); d.Took != want {
				t.Errorf("%v: %d operations took %v, want %v", p, d.Operations, d.Took, want)
			}
			if g.uses == 0 || p.Pattern != PatternRandom && g.bytes != g.uses*UseBytes {
				t.Errorf("%v: %d uses of %d bytes", p, g.uses, g.bytes)
			}
		})
	}
}
