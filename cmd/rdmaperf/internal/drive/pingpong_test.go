package drive

import "testing"

// Stale data of a slot's last message must be visible in its last byte.
func TestStampsOfOneSlotDiffer(t *testing.T) {
	for iter := uint64(1); iter < 2000; iter++ {
		for back := uint64(1); back <= 16 && back < iter; back++ {
			if stampOf(iter) == stampOf(iter-back) {
				t.Fatalf("messages %d and %d have the same stamp", iter, iter-back)
			}
		}
		if stampOf(iter) == 0 {
			t.Fatalf("message %d looks like a cleared slot", iter)
		}
	}
}
