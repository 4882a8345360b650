package stackspec

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/cli"
	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
	"github.com/rdmaperf/rdmaperf/transports/verbs"
)

// layerDevice is a tier or a provider that notes its Close.
type layerDevice struct {
	rdma.Device // below, or nil
	name        string
	log         *[]string
}

func (d *layerDevice) Name() string {
	if d.Device == nil {
		return d.name
	}
	return d.name + "+" + d.Device.Name()
}

func (d *layerDevice) Close() error {
	*d.log = append(*d.log, "close "+d.name)
	if d.Device == nil {
		return nil
	}
	return d.Device.Close()
}

// withStacks adds a tier and a provider with devices to the table for one test, and returns what they note.
func withStacks(t *testing.T) *[]string {
	t.Helper()
	var log []string
	whole := func(l Layer) string {
		name := l.Name
		if l.Params != nil {
			name += "(" + strings.Join(l.Params, ",") + ")"
		}
		if l.Device != "" {
			name += ":" + l.Device
		}
		return name
	}
	outer := params[any]{{paramDoc{name: "a"}, func(*any, value) {}}}
	before := Table
	Table = append(slices.Clone(before),
		Entry{Name: "outer", params: outer, wrap: func(l Layer, below rdma.Device) (rdma.Device, error) {
			if err := outer.Read(l, nil); err != nil {
				return nil, err
			}
			return &layerDevice{below, whole(l), &log}, nil
		}},
		Entry{Name: "chip", params: noParams{}, Chooses: true, device: func(_ *Set, l Layer) (rdma.Device, error) {
			if l.Device == "gone" {
				return nil, &reports.ExitError{Code: reports.ExitNotRun, Err: errors.New("no such chip"),
					Hint: "another"}
			}
			return &layerDevice{nil, whole(l), &log}, nil
		}})
	t.Cleanup(func() { Table = before })
	return &log
}

func TestTiersStandOnEachOther(t *testing.T) {
	log := withStacks(t)
	var s Set
	dev, provider, err := s.OpenLayers("outer(a)+outer+chip:x0")
	if err != nil {
		t.Fatal(err)
	}
	if got := dev.Name(); got != "outer(a)+outer+chip:x0" {
		t.Errorf("name %q", got)
	}
	if got := provider.Name(); got != "chip:x0" {
		t.Errorf("provider %q", got)
	}
	if err := dev.Close(); err != nil {
		t.Fatal(err)
	}
	if want := []string{"close outer(a)", "close outer", "close chip:x0"}; !slices.Equal(*log, want) {
		t.Errorf("closing does %q, want %q", *log, want)
	}
}

// A layer that fails is named, has its exit code, and leaves nothing open below.
func TestAFailingLayerIsNamed(t *testing.T) {
	log := withStacks(t)
	for _, c := range []struct {
		spec string
		code int
		want []string
		log  []string
	}{
		{"outer(b)+outer+chip", reports.ExitUsage, []string{`"outer(b)+outer+chip"`, "outer: unknown parameter",
			"parameters among a"}, []string{"close outer", "close chip"}},
		{"outer+chip:gone", reports.ExitNotRun, []string{"chip: no such chip", "try another"}, nil},
		{"outer:x0+chip", reports.ExitUsage, []string{"outer has no devices to choose from"}, nil},
		{"outer+tcp", reports.ExitUsage, []string{"tcp is not an RDMA provider", "chip"}, nil},
		{"chip+outer", reports.ExitUsage, []string{"cannot be layered over"}, nil},
		{"outer", reports.ExitUsage, []string{"needs another layer below it"}, nil},
		{"outer+", reports.ExitUsage, []string{"a layer needs a name"}, nil},
	} {
		*log = nil
		var s Set
		_, _, err := s.OpenLayers(c.spec)
		if reports.Code(err) != c.code {
			t.Errorf("%s: %v, exit code %d, want %d", c.spec, err, reports.Code(err), c.code)
			continue
		}
		for _, w := range c.want {
			if line := cli.ErrorLine(err); !strings.Contains(line, w) {
				t.Errorf("%s: %q, want %q in it", c.spec, line, w)
			}
		}
		if !slices.Equal(*log, c.log) {
			t.Errorf("%s: closed %q, want %q", c.spec, *log, c.log)
		}
		if _, err := s.Open(c.spec); reports.Code(err) != c.code {
			t.Errorf("%s as a transport: %v, want exit code %d", c.spec, err, c.code)
		}
	}
}

func TestHelpNamesWhatATierNeeds(t *testing.T) {
	withStacks(t)
	if got := Names(); !strings.Contains(got, "outer+X") {
		t.Errorf("stacks %q", got)
	}
	if got := Providers(); strings.Contains(got, "outer") || !strings.Contains(got, "chip") {
		t.Errorf("providers %q", got)
	}
}

// The name of an open stack tells every parameter that departs from the default, and means the same stack again.
func TestNamesOfOpenStacksTellTheirParameters(t *testing.T) {
	var s Set
	name := func(spec string) string {
		t.Helper()
		tr, err := s.Open(spec)
		if err != nil {
			t.Fatal(err)
		}
		defer tr.Close()
		return tr.Name()
	}
	for spec, want := range map[string]string{
		"iwarp(rev2)":                            "iwarp(crc)",
		"iwarp(nocrc,sndbuf=256K,rcvbuf=256K)":   "iwarp(nocrc,sndbuf=262144,rcvbuf=262144)",
		"iwarp(rcvbuf=64K,checked,rev1,markers)": "iwarp(crc,markers,rev1,checked,rcvbuf=65536)",
		"iwarp(local=0)":                         "iwarp(crc,local=0)",
		"iwarp(local=1M)":                        "iwarp(crc,local=1048576)",
		"iwarp(p2p,sndbuf=1M)":                   "iwarp(crc,p2p,sndbuf=1048576)",
		"tcp(rcvbuf=64K)":                        "tcp(rcvbuf=65536)",
		"tcp(local=0)":                           "tcp(local=0)",
		"tcp(local=1M)":                          "tcp(local=1048576)",
		"sched(window=1M)+iwarp(sndbuf=64K)":     "+iwarp(crc,sndbuf=65536)",
		"grpc(fused)+iwarp(nocrc,rcvbuf=64K)":    "+iwarp(nocrc,rcvbuf=65536)",
	} {
		got := name(spec)
		if got != want && !(strings.HasPrefix(want, "+") && strings.HasSuffix(got, want)) {
			t.Errorf("%s is named %s, want %s", spec, got, want)
		}
		if _, below, over := strings.Cut(got, ")+"); over {
			got = below
		}
		if again := name(got); again != got {
			t.Errorf("%s as a spec is named %s", got, again)
		}
	}
}

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
