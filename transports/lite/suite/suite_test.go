package suite

import (
	"fmt"
	"slices"
	"testing"

	"github.com/rdmaperf/rdmaperf/internal/leaktest"
	"github.com/rdmaperf/rdmaperf/softstack/iwarp"
	"github.com/rdmaperf/rdmaperf/transports/conform"
	"github.com/rdmaperf/rdmaperf/transports/lite"
	"github.com/rdmaperf/rdmaperf/transports/memdev"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

func onMem() func(i int) (Node, error) {
	f := memdev.NewFabric(memdev.Config{})
	made := 0
	return func(i int) (Node, error) {
		made++
		d, err := f.Open(fmt.Sprintf("n%d", made))
		if err != nil {
			return Node{}, err
		}
		return Node{Device: d, Listen: ":0", Kill: d.Kill}, nil
	}
}

func onIWARP(i int) (Node, error) {
	d, err := iwarp.Open(iwarp.Config{})
	if err != nil {
		return Node{}, err
	}
	return Node{Device: d, Listen: "127.0.0.1:0", Kill: d.Kill}, nil
}

func TestTheTierPasses(t *testing.T) {
	for what, c := range map[string]struct {
		open func(i int) (Node, error)
		cfg  lite.Config
	}{"mem": {open: onMem()}, "mem sends": {onMem(), lite.Config{Sends: true}}, "iwarp": {open: onIWARP}} {
		rep := Run(t.Context(), "lite+"+what, c.open, Options{Config: c.cfg})
		if rep.Err != nil {
			t.Fatal(rep.Err)
		}
		for _, r := range rep.Results {
			if r.Verdict != conform.Pass {
				t.Errorf("%s %s: %v, want %q, got %s, %s", what, r.ID, r.Verdict, r.Want, r.Got, r.Evidence)
			}
		}
	}
}

// Clients with one fault each.
type (
	guesses struct{ Client } // passwords are not looked at
	hushes  struct {         // one error is none
		Client
		of lite.Code
	}
	forwards struct{ Client } // memmove goes forwards always
	calls    struct {         // answers are bent
		Client
		bend func(b []byte, err error) ([]byte, error)
	}
)

func (w guesses) Map(name string, want lite.Perm, _ string) (lite.Handle, error) {
	return w.Client.Map(name, want, "sesame")
}

func (w hushes) hush(err error) error {
	if err == w.of {
		return nil
	}
	return err
}

func (w hushes) Write(h lite.Handle, off uint64, b []byte) error {
	return w.hush(w.Client.Write(h, off, b))
}

func (w hushes) Read(h lite.Handle, off uint64, b []byte) error {
	return w.hush(w.Client.Read(h, off, b))
}

func (w hushes) FreeRegion(h lite.Handle) error { return w.hush(w.Client.FreeRegion(h)) }

func (w hushes) Send(node, port int, b []byte) error { return w.hush(w.Client.Send(node, port, b)) }

func (w hushes) FetchAdd(h lite.Handle, off, n uint64) (uint64, error) {
	old, err := w.Client.FetchAdd(h, off, n)
	return old, w.hush(err)
}

func (w forwards) Memmove(d lite.Handle, do uint64, s lite.Handle, so, n uint64) error {
	for i := uint64(0); i < n; i += 50 {
		if err := w.Client.Memmove(d, do+i, s, so+i, min(50, n-i)); err != nil {
			return err
		}
	}
	return nil
}

func (w calls) Call(node, port int, req []byte) ([]byte, error) {
	return w.bend(w.Client.Call(node, port, req))
}

// Every fault turns the cases red that are about it.
func TestFaultsTurnCasesRed(t *testing.T) {
	for what, c := range map[string]struct {
		wrong func(c Client) Client
		red   []string // in order
	}{
		"passwords are not looked at": {func(c Client) Client { return guesses{c} }, []string{"mem/password"}},
		"what is refused is no error": {func(c Client) Client { return hushes{c, lite.ErrPermission} },
			[]string{"mem/atomic-permission", "mem/masters-alone", "mem/read-only", "mem/write-only"}},
		"writes beyond the end are cut": {func(c Client) Client { return hushes{c, lite.ErrBounds} },
			[]string{"mem/bounds"}},
		"dead handles write into nothing": {func(c Client) Client { return hushes{c, lite.ErrDeadHandle} },
			[]string{"handle/freed-while-mapped", "handle/moved-while-mapped", "handle/unmapped"}},
		"a full ring drops": {func(c Client) Client { return hushes{c, lite.ErrPortFull} },
			[]string{"call/ring-full"}},
		"memmove goes forwards always": {func(c Client) Client { return forwards{c} }, []string{"mem/set-and-move"}},
		"the last byte of long answers is lost": {func(c Client) Client {
			return calls{c, func(b []byte, err error) ([]byte, error) {
				if len(b) > 1<<20 {
					b = b[:len(b)-1]
				}
				return b, err
			}}
		}, []string{"call/every-length"}},
		"all errors of calls are one": {func(c Client) Client {
			return calls{c, func(b []byte, err error) ([]byte, error) {
				if err != nil {
					err = lite.ErrFail
				}
				return b, err
			}}
		}, []string{"call/deadline", "call/no-node", "call/no-port", "call/too-big", "node/death"}},
	} {
		o := Options{Wrong: c.wrong}
		o.Only = c.red
		rep := Run(t.Context(), "wrong", onMem(), o)
		if rep.Err != nil {
			t.Fatal(rep.Err)
		}
		var red []string
		for _, r := range rep.Results {
			if r.Verdict == conform.Fail {
				red = append(red, r.ID)
			}
		}
		slices.Sort(red)
		if !slices.Equal(red, c.red) {
			t.Errorf("%s: red %q, want %q", what, red, c.red)
		}
	}
}
