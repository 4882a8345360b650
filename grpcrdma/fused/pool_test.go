package fused

import "testing"

// A message of any length gets memory of that length, and the memory comes back to where it can serve again.
func TestPoolOfLongMessages(t *testing.T) {
	for _, n := range []int{0, 1, 64, poolStep, poolStep + 1, 2 * poolStep, 1 << 20, 1<<20 + 13, defaultMaxRecv,
		defaultMaxRecv + 1, 9 << 20} {
		p := poolFor(n)
		b := p.Get(n)
		if len(*b) != n {
			t.Fatalf("%d bytes for a message of %d", len(*b), n)
		}
		if (p == &longMessages) != (n > poolStep && n <= defaultMaxRecv) {
			t.Errorf("%d bytes come from the wrong pool", n)
		}
		p.Put(b)
	}
	var p messagePool
	p.Put(p.Get(3*poolStep - 5))
	for range 1000 { // sync.Pool forgets now and then, at random under the race detector
		b := p.Get(2*poolStep + 1)
		if cap(*b) != 3*poolStep {
			t.Fatalf("capacity %d", cap(*b))
		}
		(*b)[0] = 1
		p.Put(b)
		if again := p.Get(3 * poolStep); (*again)[0] == 1 {
			return
		}
	}
	t.Error("nothing is used again")
}
