package procs

import (
	"runtime"
	"sync"
	"testing"
)

// One P more than there are spinners, until the last of them has gone.
func TestASpinnerLeavesAPToTheOthers(t *testing.T) {
	base := runtime.GOMAXPROCS(2)
	defer runtime.GOMAXPROCS(base)
	want := func(n int) {
		t.Helper()
		if got := runtime.GOMAXPROCS(0); got != n {
			t.Fatalf("GOMAXPROCS is %d, want %d", got, n)
		}
	}
	first := Reserve(1)
	want(2)
	second := Reserve(4)
	want(6)
	second()
	second() // a second word of the same counts for nothing
	if got := runtime.GOMAXPROCS(0); got < 2 {
		t.Fatalf("GOMAXPROCS is %d beside one spinner", got)
	}
	third := Reserve(2)
	if got := runtime.GOMAXPROCS(0); got < 4 {
		t.Fatalf("GOMAXPROCS is %d beside three spinners", got)
	}
	first()
	third()
	want(2)
}

// A GOMAXPROCS that is large enough stays as it is.
func TestThereIsRoomAlready(t *testing.T) {
	base := runtime.GOMAXPROCS(16)
	defer runtime.GOMAXPROCS(base)
	release := Reserve(3)
	if got := runtime.GOMAXPROCS(0); got != 16 {
		t.Errorf("GOMAXPROCS is %d", got)
	}
	release()
	if got := runtime.GOMAXPROCS(0); got != 16 {
		t.Errorf("GOMAXPROCS is %d behind the last spinner", got)
	}
}

func TestReservationsOfManyAtOnceAddUp(t *testing.T) {
	base := runtime.GOMAXPROCS(2)
	defer runtime.GOMAXPROCS(base)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 20 {
				release := Reserve(1)
				if got := runtime.GOMAXPROCS(0); got < 2 {
					t.Errorf("GOMAXPROCS is %d", got)
				}
				release()
			}
		})
	}
	all.Wait()
	if got := runtime.GOMAXPROCS(0); got != 2 {
		t.Errorf("GOMAXPROCS is %d behind the last of them", got)
	}
}
