package log

import (
	"bytes"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/rdmaperf/rdmaperf/internal/expect"
	"github.com/rdmaperf/rdmaperf/transports/lite"
	"github.com/rdmaperf/rdmaperf/transports/lite/apps/local"
	"github.com/rdmaperf/rdmaperf/transports/lite/apps/local/localtest"
)

func record(node, i int) []byte {
	return bytes.Repeat([]byte(fmt.Sprintf("%d.%d ", node, i)), 1+(node*31+i*7)%60)
}

// opened is a log on some of the nodes of a cluster, as a client of another one has it.
func opened(t *testing.T, nodes, by int, size uint64, at ...int) (*local.Cluster, *lite.Client, *Log) {
	t.Helper()
	c := localtest.Open(t, nodes)
	cl := expect.Get(c.Nodes[by].Client(lite.ClientConfig{}))(t)
	expect.OK(t, Create(cl, "log", size, at))
	return c, cl, expect.Get(Open(cl, "log"))(t)
}

// Four nodes append at once; the log has what one machine's list has, each record once
// and whole, in the order of positions, and those of one node in their order.
func TestAppendsAreAtomic(t *testing.T) {
	const each = 300
	c, _, l := opened(t, 4, 0, 9<<20, 1, 2) // spans nodes and chunks
	expect.OK(t, local.Each(c.Nodes, func(i int, n *lite.Node) error {
		cl, err := n.Client(lite.ClientConfig{})
		if err != nil {
			return err
		}
		l, err := Open(cl, "log")
		for k := 0; k < each && err == nil; k++ {
			_, err = l.Append(record(i, k))
		}
		return err
	}))
	var got, want []string
	place := map[string]int{}
	expect.Get(l.Scan(0, func(_ uint64, r []byte) error {
		place[string(r)] = len(got)
		got = append(got, string(r))
		return nil
	}))(t)
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
	_, cl, l := opened(t, 2, 1, 4096, 0)
	expect.Get(l.Append([]byte("before")))(t)
	expect.Get(cl.FetchAdd(l.tail, 0, 7))(t) // somebody who died now
	expect.Get(l.Append([]byte("behind")))(t)
	var got []string
	next, err := l.Scan(0, func(_ uint64, r []byte) error { got = append(got, string(r)); return nil })
	if err != nil || !slices.Equal(got, []string{"before", "behind"}) || next != 9 {
		t.Errorf("%q, next %d, %v", got, next, err)
	}
	expect.Is(t, "a record that does not fit", expect.Err(l.Append(make([]byte, 4096))), ErrFull)
}

func TestADeadNodeIsAnError(t *testing.T) {
	c, _, l := opened(t, 3, 1, 1<<20, 2)
	c.Kill(2)
	var err error
	start := time.Now()
	for end := start.Add(10 * time.Second); err == nil && time.Now().Before(end); {
		_, err = l.Append([]byte("x"))
	}
	expect.Is(t, fmt.Sprint("after ", time.Since(start)), err, lite.ErrPeerDead)
}

func FuzzParse(f *testing.F) {
	f.Add([]byte("LLog\x01\x00\x00\x00"), uint64(0))
	f.Fuzz(func(t *testing.T, b []byte, at uint64) {
		if r, n := parse(b, at); n > 0 && (len(r) > len(b) || n != units(len(r))) {
			t.Errorf("%d bytes in %d units of %d bytes", len(r), n, len(b))
		}
	})
}
