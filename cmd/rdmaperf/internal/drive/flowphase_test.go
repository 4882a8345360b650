package drive

import (
	"testing"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
)

// A phase goes on where the one before ended: with the slot of the next message, control messages included,
// or of the next number; and writes begin anew.
func TestAPhaseBothWaysGoesOn(t *testing.T) {
	for op, head := range map[string]int{"send": 37 % 32, "write_imm": 35 % 32, "write": 0} {
		_, _, _, l := bothWaysOn(op, engine.SideClient, unverified)
		l.Messages, l.sent = 37, 35
		if l.seek(); l.Head != head {
			t.Errorf("%s: it begins in slot %d, want %d", op, l.Head, head)
		}
	}
	for brought, fine := range map[int64]bool{7: true, 6: false} {
		_, d, _, l := bothWaysOn("read", engine.SideClient, func(*engine.Shape) {})
		l.Posted, l.brought = 7, brought
		if err := d.Verify(1, make([]engine.LaneCount, 1)); (err == nil) != fine {
			t.Errorf("%d of 7 reads were compared: %v", brought, err)
		}
	}
}
