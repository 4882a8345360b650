package stackspec

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/rdmaperf/rdmaperf/transports/verbs"
)

// Every layer of the table is either measured or left out with a reason.
func TestAllIsEveryStackOfTheTable(t *testing.T) {
	active := []verbs.DeviceInfo{{Name: "rxe0", Ports: []verbs.PortInfo{{Number: 1, Active: true}}}}
	for _, c := range []struct {
		what    string
		devices []verbs.DeviceInfo
		err     error
		want    string
	}{
		{"no device", nil, errors.New("none"),
			"iwarp,tcp,sched+iwarp,lite+iwarp,grpc(tcp),grpc(dropin)+iwarp,grpc(fused)+iwarp"},
		{"a device", active, nil,
			"verbs:rxe0,tcp,sched+verbs:rxe0,lite+verbs:rxe0,grpc(tcp),grpc(dropin)+verbs:rxe0,grpc(fused)+verbs:rxe0"},
	} {
		withDevices(t, c.devices, c.err)
		stacks, left := All()
		if got := strings.Join(stacks, ","); got != c.want {
			t.Errorf("%s: %s, want %s", c.what, got, c.want)
		}
		for i := range Table {
			e := &Table[i]
			measured := slices.ContainsFunc(stacks, func(s string) bool { return strings.HasPrefix(s, e.Name) })
			at := slices.IndexFunc(left, func(l LeftOut) bool { return strings.HasPrefix(l.Stack, e.Name) })
			if measured == (at >= 0) || at >= 0 && left[at].Why == "" {
				t.Errorf("%s: %s is measured: %v, and left out: %v", c.what, e.Name, measured, left)
			}
		}
	}
}
