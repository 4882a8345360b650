package bench

import (
	"testing"

	"github.com/rdmaperf/rdmaperf/transports"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

func TestALullIsAPartOfWhatTheDeviceHasToDo(t *testing.T) {
	for _, c := range []struct {
		name       string
		left       int
		done, took int64
		want       int64 // ns
	}{
		{"128 of 250 us", 127, 1000, 250_000_000, 250_000 * 127 / 64},
		{"long ones", 127, 10, 100_000_000, mostLull},
		{"short ones", 128 - 100, 1000, 14_000_000, 6125},
		{"nothing but the next completion", 0, 1000, 250_000_000, 0},
		{"fewer than that", -99, 1000, 250_000_000, 0},
		{"before the first", 127, 0, 250_000_000, 0},
	} {
		if got := lullOf(c.left, c.done, c.took); got != c.want {
			t.Errorf("%s: %d ns, want %d", c.name, got, c.want)
		}
	}
}

// Only devices whose kernel works on these CPUs gain by it, and only where they need no
// polls; who is paced by echoes or waits for events is not a stream.
func TestOnlyStreamsOverUnaidedSoftwareLull(t *testing.T) {
	soft := transports.Caps{Unaided: true, Label: rdma.LabelSoft}
	for _, c := range []struct {
		name           string
		caps           transports.Caps
		sh             Shape
		client, server bool
	}{
		{"sends", soft, Shape{Point: Point{Workload: WorkloadThroughput, Op: "send"}, Naps: true}, true, true},
		{"reads", soft, Shape{Point: Point{Workload: WorkloadThroughput, Op: "read"}, Idle: true}, true, false},
		{"events", soft, Shape{Point: Point{Workload: WorkloadThroughput, Op: "read"}, Polling: PollingEvent}, false, false},
		{"hardware", transports.Caps{Unaided: true, Label: rdma.LabelDevice}, Shape{Point: Point{Workload: WorkloadThroughput, Op: "send"}, Naps: true}, false, false},
		{"user space", transports.Caps{Label: rdma.LabelSoft}, Shape{Point: Point{Workload: WorkloadThroughput, Op: "send"}}, false, false},
	} {
		c.sh.Threads = 1
		for side, want := range map[string]bool{sideClient: c.client, sideServer: c.server} {
			crew, err := newCrew(&c.sh, side, nil, -1, c.caps)
			if err != nil {
				t.Fatal(err)
			}
			defer crew.close()
			if got := crew.workers[0].lulls; got != want {
				t.Errorf("%s, %s: lulls %v, want %v", c.name, side, got, want)
			}
		}
	}
}
