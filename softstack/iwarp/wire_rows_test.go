package iwarp

import (
	"bytes"
	"testing"

	"github.com/rdmaperf/rdmaperf/softstack/rdmap"
	"github.com/rdmaperf/rdmaperf/softstack/wiretest"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// row is one case of the catalogue of bent peers: a stimulus in full operation and what must come of it.
type row struct {
	name  string
	opt   dutOptions
	modes func(m *mode) bool // nil for all; may also change the mode

	// script is the stimulus. It may return the offending segment, whose headers the Terminate must then quote.
	script func(d *dut) *wiretest.Segment

	want   []rdmap.TermCode // allowed reasons; nil: there must be no Terminate
	maybe  bool             // no Terminate is right too
	alive  bool             // the connection must still work afterwards
	good   []uint64         // requests that complete with success
	status map[uint64]rdma.Status
}

// runRows runs beside other tables: much of their time is waiting.
func runRows(t *testing.T, rows []row) {
	t.Parallel()
	for _, r := range rows {
		for _, m := range modes {
			if r.modes != nil && !r.modes(&m) {
				continue
			}
			t.Run(r.name+"/"+m.name, func(t *testing.T) { r.run(t, m) })
		}
	}
}

func (r *row) run(t *testing.T, m mode) {
	opt := r.opt
	opt.bare = opt.bare || r.alive
	d := newDUT(t, m, opt)
	offender := r.script(d)
	good := r.good
	if r.alive {
		text := "still here"
		d.send(d.message(text))
		d.received(len(good), text)
		good = append(good[:len(good):len(good)], uint64(len(good)+1))
		must(t, d.peer.CloseWrite())
	}
	d.checkEnd(r.want, r.maybe, offender, good, r.status)
}

func only(initiator bool) func(*mode) bool {
	return func(m *mode) bool { return m.initiator == initiator }
}

// marked is one mode of each role with markers both ways.
func marked(m *mode) bool {
	m.cfg.Markers, m.markers = true, true
	return !m.cfg.StoreAndForward
}

func codes(c ...rdmap.TermCode) []rdmap.TermCode { return c }

// bent is a stimulus of segments, the last of which is at fault: in one write, but for a large one at the end.
func bent(segs ...*wiretest.Segment) func(*dut) *wiretest.Segment {
	return func(d *dut) *wiretest.Segment {
		last := segs[len(segs)-1]
		if len(last.ULPDU()) > directMin+100 {
			d.sendInTwo(segs...)
		} else {
			d.send(segs...)
		}
		return last
	}
}

// fault is a stimulus whose Terminate quotes nothing.
func fault(segs ...*wiretest.Segment) func(*dut) *wiretest.Segment {
	return func(d *dut) *wiretest.Segment {
		d.send(segs...)
		return nil
	}
}

func pattern(n int) []byte { return bytes.Repeat([]byte{0xee, 0x77, 0x11}, n/3+1)[:n] }
