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
	for what, open := range map[string]func(i int) (Node, error){"mem": onMem(), "iwarp": onIWARP} {
		rep := Run(t.Context(), "lite+"+what, open, Options{})
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

// wrong is a client with one fault.
type wrong struct {
	Client
	call  func(c Client, node, port int, req []byte) ([]byte, error)
	write func(c Client, h lite.Handle, off uint64, b []byte) error
	read  func(c Client, h lite.Handle, off uint64, b []byte) error
	remap func(c Client, name string, want lite.Perm, password string) (lite.Handle, error)
	free  func(c Client, h lite.Handle) error
	send  func(c Client, node, port int, b []byte) error
	add   func(c Client, h lite.Handle, off, n uint64) (uint64, error)
	move  func(c Client, d lite.Handle, do uint64, s lite.Handle, so, n uint64) error
}

func (w *wrong) Call(node, port int, req []byte) ([]byte, error) {
	if w.call != nil {
		return w.call(w.Client, node, port, req)
	}
	return w.Client.Call(node, port, req)
}

func (w *wrong) Write(h lite.Handle, off uint64, b []byte) error {
	if w.write != nil {
		return w.write(w.Client, h, off, b)
	}
	return w.Client.Write(h, off, b)
}

func (w *wrong) Read(h lite.Handle, off uint64, b []byte) error {
	if w.read != nil {
		return w.read(w.Client, h, off, b)
	}
	return w.Client.Read(h, off, b)
}

func (w *wrong) Map(name string, want lite.Perm, password string) (lite.Handle, error) {
	if w.remap != nil {
		return w.remap(w.Client, name, want, password)
	}
	return w.Client.Map(name, want, password)
}

func (w *wrong) FreeRegion(h lite.Handle) error {
	if w.free != nil {
		return w.free(w.Client, h)
	}
	return w.Client.FreeRegion(h)
}

func (w *wrong) Send(node, port int, b []byte) error {
	if w.send != nil {
		return w.send(w.Client, node, port, b)
	}
	return w.Client.Send(node, port, b)
}

func (w *wrong) FetchAdd(h lite.Handle, off, n uint64) (uint64, error) {
	if w.add != nil {
		return w.add(w.Client, h, off, n)
	}
	return w.Client.FetchAdd(h, off, n)
}

func (w *wrong) Memmove(d lite.Handle, do uint64, s lite.Handle, so, n uint64) error {
	if w.move != nil {
		return w.move(w.Client, d, do, s, so, n)
	}
	return w.Client.Memmove(d, do, s, so, n)
}

// Every fault turns the cases red that are about it.
func TestFaultsTurnCasesRed(t *testing.T) {
	hush := func(err error, of lite.Code) error {
		if err == of {
			return nil
		}
		return err
	}
	for what, c := range map[string]struct {
		wrong wrong
		red   []string
	}{
		"passwords are not looked at": {wrong{remap: func(c Client, name string, want lite.Perm, _ string) (lite.Handle,
			error) {
			return c.Map(name, want, "sesame")
		}}, []string{"mem/password"}},
		"a refused write is no error": {wrong{write: func(c Client, h lite.Handle, off uint64, b []byte) error {
			return hush(c.Write(h, off, b), lite.ErrPermission)
		}}, []string{"mem/read-only"}},
		"a refused read is no error": {wrong{read: func(c Client, h lite.Handle, off uint64, b []byte) error {
			return hush(c.Read(h, off, b), lite.ErrPermission)
		}}, []string{"mem/write-only"}},
		"writes beyond the end are cut": {wrong{write: func(c Client, h lite.Handle, off uint64, b []byte) error {
			return hush(c.Write(h, off, b), lite.ErrBounds)
		}}, []string{"mem/bounds"}},
		"dead handles write into nothing": {wrong{write: func(c Client, h lite.Handle, off uint64, b []byte) error {
			return hush(c.Write(h, off, b), lite.ErrDeadHandle)
		}}, []string{"handle/unmapped", "handle/freed-while-mapped", "handle/moved-while-mapped"}},
		"who is no master frees": {wrong{free: func(c Client, h lite.Handle) error {
			return hush(c.FreeRegion(h), lite.ErrPermission)
		}}, []string{"mem/masters-alone"}},
		"atomics ask for nothing": {wrong{add: func(c Client, h lite.Handle, off, n uint64) (uint64, error) {
			old, err := c.FetchAdd(h, off, n)
			return old, hush(err, lite.ErrPermission)
		}}, []string{"mem/atomic-permission"}},
		"memmove goes forwards always": {wrong{move: func(c Client, d lite.Handle, do uint64, s lite.Handle, so,
			n uint64) error {
			for i := uint64(0); i < n; i += 50 {
				if err := c.Memmove(d, do+i, s, so+i, min(50, n-i)); err != nil {
					return err
				}
			}
			return nil
		}}, []string{"mem/set-and-move"}},
		"the last byte of long answers is lost": {wrong{call: func(c Client, node, port int, req []byte) ([]byte,
			error) {
			b, err := c.Call(node, port, req)
			if len(b) > 1<<20 {
				b = b[:len(b)-1]
			}
			return b, err
		}}, []string{"call/every-length"}},
		"all errors of calls are one": {wrong{call: func(c Client, node, port int, req []byte) ([]byte, error) {
			b, err := c.Call(node, port, req)
			if err != nil {
				err = lite.ErrFail
			}
			return b, err
		}}, []string{"call/no-port", "call/too-big", "call/deadline", "call/no-node", "node/death"}},
		"a full ring drops": {wrong{send: func(c Client, node, port int, b []byte) error {
			return hush(c.Send(node, port, b), lite.ErrPortFull)
		}}, []string{"call/ring-full"}},
	} {
		w := c.wrong
		o := Options{Wrong: func(c Client) Client {
			bent := w
			bent.Client = c
			return &bent
		}}
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
		want := slices.Sorted(slices.Values(c.red))
		if !slices.Equal(red, want) {
			t.Errorf("%s: red %q, want %q", what, red, want)
		}
	}
}
