package leaktest

import (
	"testing"
	"time"

	"go.uber.org/goleak"
)

type runs func() int

func (r runs) Run() int { return r() }

// What ends late is waited for; what does not end is left for goleak to find.
func TestLateIsNoLeak(t *testing.T) {
	before := grace
	defer func() { grace = before }()
	leave := func(end <-chan struct{}) runs {
		return func() int {
			go func() { <-end }()
			return 0
		}
	}
	late := make(chan struct{})
	time.AfterFunc(time.Second, func() { close(late) })
	if code := (patient{leave(late)}).Run(); code != 0 {
		t.Errorf("code %d", code)
	}
	if err := goleak.Find(); err != nil {
		t.Errorf("Run did not wait for a goroutine that ends: %v", err)
	}
	grace = time.Millisecond
	never := make(chan struct{})
	defer close(never)
	if code := (patient{leave(never)}).Run(); code != 0 || goleak.Find() == nil {
		t.Errorf("code %d, and nothing is left", code)
	}
	if code := (patient{runs(func() int { return 3 })}).Run(); code != 3 {
		t.Errorf("code %d, want that of the tests", code)
	}
}
