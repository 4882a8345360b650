package log

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/rdmaperf/rdmaperf/transports/lite"
	"github.com/rdmaperf/rdmaperf/transports/lite/apps/local"
	"github.com/rdmaperf/rdmaperf/transports/lite/apps/local/localtest"
)

func record(node, i int) []byte {
	return bytes.Repeat([]byte(fmt.Sprintf("%d.%d ", node, i)), 1+(node*31+i*7)%60)
}

// Four nodes append at once; the log has what one machine's list has, each record once
// and whole, in the order of positions, and those of one node in their order.
func TestAppendsAreAtomic(t *testing.T) {
	const each = 300
	c := localtest.Open(t, 4)
	first, err := c.Nodes[0].Client(lite.ClientConfig{})
	if err != nil {
		t.Fatal(err)
	}
	if err := Create(first, "log", 9<<20, []int{1, 2}); err != nil { // spans nodes and chunks
		t.Fatal(err)
	}
	err = local.Each(c.Nodes, func(i int, n *lite.Node) error {
		cl, err := n.Client(lite.ClientConfig{})
		if err != nil {
			return err
		}
		l, err := Open(cl, "log")
		for k := 0; k < each && err == nil; k++ {
			_, err = l.Append(record(i, k))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	l, err := Open(first, "log")
	if err != nil {
		t.Fatal(err)
	}
	var got, want []string
	place := map[string]int{}
	if _, err := l.Scan(0, func(_ uint64, r []byte) error {
		place[string(r)] = len(got)
		got = append(got, string(r))
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	for i := range 4 {
		for k := range each {
			want = append(want, string(record(i, k)))
			if k > 0 && place[string(record(i, k))] < place[string(record(i, k-1))] {
				t.Fatalf("record %d of node %d is before the one that it appended earlier", k, i)
			}
		}
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Fatalf("%d records, want %d, or others", len(got), len(want))
	}
}

// Room that was taken and never written is no record, and hides none.
func TestAHoleIsPassedOver(t *testing.T) {
	c := localtest.Open(t, 2)
	cl, err := c.Nodes[1].Client(lite.ClientConfig{})
	if err != nil {
		t.Fatal(err)
	}
	if err := Create(cl, "log", 4096, []int{0}); err != nil {
		t.Fatal(err)
	}
	l, err := Open(cl, "log")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.Append([]byte("before")); err != nil {
		t.Fatal(err)
	}
	if _, err := cl.FetchAdd(l.tail, 0, 7); err != nil { // somebody who died now
		t.Fatal(err)
	}
	if _, err := l.Append([]byte("behind")); err != nil {
		t.Fatal(err)
	}
	var got []string
	next, err := l.Scan(0, func(_ uint64, r []byte) error { got = append(got, string(r)); return nil })
	if err != nil || !slices.Equal(got, []string{"before", "behind"}) || next != 9 {
		t.Errorf("%q, next %d, %v", got, next, err)
	}
	if _, err := l.Append(make([]byte, 4096)); !errors.Is(err, ErrFull) {
		t.Errorf("a record that does not fit: %v", err)
	}
}

func TestADeadNodeIsAnError(t *testing.T) {
	c := localtest.Open(t, 3)
	cl, err := c.Nodes[1].Client(lite.ClientConfig{})
	if err != nil {
		t.Fatal(err)
	}
	if err := Create(cl, "log", 1<<20, []int{2}); err != nil {
		t.Fatal(err)
	}
	l, err := Open(cl, "log")
	if err != nil {
		t.Fatal(err)
	}
	c.Kill(2)
	start := time.Now()
	for end := start.Add(10 * time.Second); err == nil && time.Now().Before(end); {
		_, err = l.Append([]byte("x"))
	}
	if !errors.Is(err, lite.ErrPeerDead) {
		t.Errorf("after %v: %v, want %v", time.Since(start), err, lite.ErrPeerDead)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte("LLog\x01\x00\x00\x00"), uint64(0))
	f.Fuzz(func(t *testing.T, b []byte, at uint64) {
		if r, n := parse(b, at); n > 0 && (len(r) > len(b) || n != units(len(r))) {
			t.Errorf("%d bytes in %d units of %d bytes", len(r), n, len(b))
		}
	})
}
