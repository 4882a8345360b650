package mixed

import (
	"encoding/binary"
	"fmt"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/drive"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
)

// mostReplayed bounds the writes that are followed back from the last one: a
// second of work. What nobody has written since is not compared.
const mostReplayed = 1 << 24

// written is the half of a window that is written, as it should be behind a phase. Which
// write a byte is from is found backwards from the last operation: the first that covers it.
type written struct {
	*drive.Proof
	depth   uint64
	covered []uint64 // a bit for each grain
	left    int      // grains that some write could still cover
	inCell  int      // grains of a cell
}

// verifyWrites holds the window against what the client says it did.
func verifyWrites(p *drive.Proof, sent engine.LaneCount) error {
	sh := p.L.Sh
	o, err := optionsOf(sh.Point)
	if err != nil {
		return err
	}
	x := written{Proof: p, depth: uint64(sh.Depth), inCell: sh.Stride() / grain}
	x.covered = make([]uint64, (sh.Slots*x.inCell+63)/64)
	for _, b := range o.Writes {
		x.left = max(x.left, sh.Slots*min(places(sh.Size, b.Size)*aligned(b.Size)/grain, x.inCell))
	}
	order := newOrder(&o, sh, p.Gen, p.L.Index)
	n := uint64(max(sent.Count, 0))
	for replayed := 0; n > 0 && x.left > 0 && o.ReadPercent < hundred; replayed++ {
		if replayed == mostReplayed {
			return nil
		}
		n--
		if op := order.at(n); op.dir == writes {
			if err := x.compare(op, n); err != nil {
				return err
			}
		}
	}
	return x.untouched()
}

// compare holds what is left of write n against it.
func (x *written) compare(op operation, n uint64) error {
	sh := x.L.Sh
	source, mark := sourceOf(x.Proof, int(n%x.depth)), stampOf(x.Proof, n)
	block := x.L.Mem[sh.RxSlot(op.cell)+op.at:][:op.size]
	first := op.cell*x.inCell + op.at/grain
	whole, some := true, false
	for at := 0; at < op.size; at += grain {
		i := first + at/grain
		if x.covered[i/64]&(1<<(i%64)) != 0 {
			whole = false
			continue
		}
		x.covered[i/64] |= 1 << (i % 64)
		x.left--
		some = true
		b := block[at:min(at+grain, op.size)]
		if i, want := matchStamp(b, mark); i >= 0 {
			return x.W.Corrupt(x.L, fmt.Sprintf("mark of write %d", n), at+i, want, b[i])
		}
		if len(b) > headSize {
			if i, want := engine.MatchPatternAt(b[headSize:], source, at+headSize); i >= 0 {
				return x.W.Corrupt(x.L, fmt.Sprintf("write %d", n), at+headSize+i, want, b[headSize+i])
			}
		}
		x.W.Compared.Bytes += int64(len(b))
	}
	if some {
		x.W.Compared.Numbers++
	}
	if some && whole {
		x.W.Compared.Messages++
	}
	return nil
}

func matchStamp(b []byte, mark uint64) (offset int, want byte) {
	var m [headSize]byte
	binary.LittleEndian.PutUint64(m[:], mark)
	head := min(len(b), headSize)
	if i := engine.FirstDifference(b[:head], m[:head]); i >= 0 {
		return i, m[i]
	}
	return -1, 0
}

// untouched finds bytes where no write was: the window was cleared before the phase.
func (x *written) untouched() error {
	sh := x.L.Sh
	half := x.L.Mem[sh.RxOff():][:sh.Slots*sh.Stride()]
	for i := range sh.Slots * x.inCell {
		if x.covered[i/64]&(1<<(i%64)) != 0 {
			continue
		}
		if k := engine.FirstNonZero(half[i*grain:][:grain]); k >= 0 {
			return x.W.Corrupt(x.L, "bytes that no write was for", i*grain+k, 0, half[i*grain+k])
		}
	}
	return nil
}
