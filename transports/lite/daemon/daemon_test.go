package daemon

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdmaperf/rdmaperf/internal/expect"
	"github.com/rdmaperf/rdmaperf/internal/leaktest"
	"github.com/rdmaperf/rdmaperf/transports/lite"
	"github.com/rdmaperf/rdmaperf/transports/memdev"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// dyingSocket makes the test binary a client that writes until it is killed.
const dyingSocket = "LITE_DAEMON_TEST_SOCKET"

func TestMain(m *testing.M) {
	if path := os.Getenv(dyingSocket); path != "" {
		os.Exit(dying(path))
	}
	leaktest.Main(m)
}

// dying maps a region, publishes its own place, opens a port, and floods.
func dying(path string) int {
	c, err := Dial(context.Background(), path, ClientConfig{})
	if err != nil {
		fmt.Println(err)
		return 1
	}
	b, _ := c.Alloc(64 << 10)
	h, err := c.Map("shared", lite.PermWrite, "")
	if err == nil {
		_, err = c.Publish(lite.RegionConfig{Name: "dying", Open: lite.PermAll}, b)
	}
	if err == nil {
		err = c.Serve(9, 64, 4)
	}
	if err != nil {
		fmt.Println(err)
		return 1
	}
	at, _ := c.Offset(b)
	fmt.Println("ready")
	var done [64]lite.Done
	for {
		_, _ = c.Post([]lite.Op{{Kind: lite.OpWrite, Handle: h, Off: 0, Local: at, Len: 64}})
		_, _ = c.Poll(done[:])
	}
}

// world is two nodes of the reference device; the second one has a daemon.
type world struct {
	far, node *lite.Node
	daemon    *Daemon
	path      string
}

func soon(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	t.Cleanup(cancel)
	return ctx
}

func open(t testing.TB, conns int, cfg Config) *world {
	t.Helper()
	f := memdev.NewFabric(memdev.Config{})
	w := &world{path: filepath.Join(t.TempDir(), "s")}
	manager := ""
	for i, at := range []**lite.Node{&w.far, &w.node} {
		dev := expect.Get(f.Open(fmt.Sprint("n", i)))(t)
		c := lite.Config{Listen: fmt.Sprintf("n%d:0", i), Manager: manager, Arena: 24 << 20, Ring: 64 << 10}
		if i == 1 {
			c.Segments, c.SegmentSize = conns, 1<<20
		}
		n := expect.Get(lite.Open(soon(t), dev, c))(t)
		*at, manager = n, n.Addr()
		t.Cleanup(func() { expect.OK(t, errors.Join(n.Close(), dev.Close())) })
	}
	expect.OK(t, w.far.Await(soon(t), 2))
	expect.OK(t, w.node.Await(soon(t), 2))
	w.daemon = expect.Get(Serve(w.node, w.path, cfg))(t)
	t.Cleanup(func() { expect.OK(t, w.daemon.Close()) })
	return w
}

func (w *world) dial(t testing.TB, cfg ClientConfig) *Client {
	t.Helper()
	if cfg.Timeout == 0 {
		cfg.Timeout = 20 * time.Second
	}
	c := expect.Get(Dial(soon(t), w.path, cfg))(t)
	t.Cleanup(func() { c.Close() })
	return c
}

// until waits for what other goroutines do.
func until(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("never: ", what)
		}
	}
}

// An application cannot tell where its node lives.
func TestBothWaysInAreOneInterface(t *testing.T) {
	w := open(t, 2, Config{})
	inside := expect.Get(w.node.Client(lite.ClientConfig{Timeout: 20 * time.Second}))(t)
	port, err := w.far.Serve(3, lite.PortConfig{Handle: func(r *lite.Request) {
		if r.OneWay {
			r.Release()
			return
		}
		_ = r.Reply(append([]byte("heard "), r.Payload...))
	}})
	expect.OK(t, err)
	defer port.Close()
	owner := expect.Get(w.far.Client(lite.ClientConfig{Timeout: 20 * time.Second}))(t)
	expect.Get(owner.Malloc(lite.RegionConfig{Name: "locked", Size: 64, Open: lite.PermRead, Password: "p"}))(t)
	for name, a := range map[string]lite.Access{"inside": inside, "hidden": w.dial(t, ClientConfig{}),
		"crossing": w.dial(t, ClientConfig{Cross: true})} {
		t.Run(name, func(t *testing.T) {
			h, err := a.Malloc(lite.RegionConfig{Name: "r-" + name, Size: 5 << 20, Nodes: []int{0, 1},
				Open: lite.PermRead, Password: "p"})
			expect.OK(t, err)
			text := bytes.Repeat([]byte("over the border "), 1000)
			expect.OK(t, a.Write(h, 4<<20-100, text))
			got := make([]byte, len(text))
			expect.OK(t, a.Read(h, 4<<20-100, got))
			if !bytes.Equal(got, text) {
				t.Error("other bytes came back")
			}
			old, err := a.FetchAdd(h, 8, 5)
			if err != nil || old != 0 {
				t.Errorf("fetch-add: %d, %v", old, err)
			}
			if old, err = a.CmpSwap(h, 8, 5, 7); err != nil || old != 5 {
				t.Errorf("compare-swap: %d, %v", old, err)
			}
			expect.OK(t, a.Memset(h, 0, 9, 4))
			expect.OK(t, a.Memmove(h, 16, h, 0, 8))
			expect.OK(t, a.Read(h, 16, got[:8]))
			if !bytes.Equal(got[:8], []byte{9, 9, 9, 9, 0, 0, 0, 0}) {
				t.Errorf("memset and memcpy: %v", got[:8])
			}
			b := expect.Get(a.Alloc(4096))(t)
			at := expect.Get(a.Offset(b))(t)
			var ops []lite.Op
			for i := range 20 {
				b[i] = byte(i + 1)
				ops = append(ops, lite.Op{Kind: lite.OpWrite, Handle: h, Off: uint64(100 + i), Local: at + uint64(i),
					Len: 1, Slot: uint32(i), Unsignaled: i%5 != 4})
			}
			n, err := a.Post(ops)
			if n != len(ops) || err != nil {
				t.Fatalf("posted %d: %v", n, err)
			}
			var done []lite.Done
			until(t, "the ends of the batch", func() bool {
				var d [8]lite.Done
				k := expect.Get(a.Poll(d[:]))(t)
				done = append(done, d[:k]...)
				return len(done) == 4
			})
			for i, d := range done {
				if d.Slot != uint32(5*i+4) || d.Status != rdma.StatusSuccess {
					t.Errorf("end %d: %+v", i, d)
				}
			}
			expect.OK(t, a.Read(h, 100, got[:20]))
			if !bytes.Equal(got[:20], b[:20]) {
				t.Errorf("batch: %v", got[:20])
			}
			reply, err := a.Call(0, 3, []byte(name))
			if err != nil || string(reply) != "heard "+name {
				t.Errorf("call: %q, %v", reply, err)
			}
			expect.OK(t, a.Send(0, 3, []byte("x")))
			expect.Is(t, "call of a closed port", expect.Err(a.Call(0, 4, nil)), lite.ErrNoPort)
			if size, err := a.Size(h); size != 5<<20 || err != nil {
				t.Errorf("size %d, %v", size, err)
			}
			expect.Is(t, "over the end", a.Write(h, 5<<20-1, []byte("xx")), lite.ErrBounds)
			weak := expect.Get(a.Map("r-"+name, lite.PermRead, "p"))(t)
			expect.Is(t, "write by a handle that reads", a.Write(weak, 0, []byte("x")), lite.ErrPermission)
			expect.Is(t, "wrong password", expect.Err(a.Map("locked", lite.PermRead, "q")), lite.ErrPassword)
			expect.OK(t, a.FreeRegion(h))
			expect.Is(t, "a handle of what was freed", a.Read(weak, 0, got[:1]), lite.ErrDeadHandle)
			expect.OK(t, a.Free(b))
		})
	}
}

// A port of a client takes calls from another node, and messages one way.
func TestAClientServesAPort(t *testing.T) {
	for _, polls := range []time.Duration{0, 100 * time.Millisecond} {
		w := open(t, 1, Config{For: polls})
		c := w.dial(t, ClientConfig{})
		expect.OK(t, c.Serve(5, 1000, 3))
		caller := expect.Get(w.far.Client(lite.ClientConfig{Timeout: 20 * time.Second}))(t)
		end := make(chan error, 1)
		go func() {
			for i := range 50 {
				got, err := caller.Call(1, 5, fmt.Append(nil, "call ", i))
				if want := fmt.Sprint("answer to call ", i); err != nil || string(got) != want {
					end <- fmt.Errorf("%q, %v: want %q", got, err, want)
					return
				}
			}
			end <- caller.Send(1, 5, []byte("bye"))
		}()
		for {
			m := expect.Get(c.RecvWait())(t)
			if m.OneWay {
				if string(m.Payload) != "bye" || m.From != 0 {
					t.Errorf("message %+v", m)
				}
				expect.OK(t, m.Release())
				break
			}
			expect.OK(t, m.Reply(0, append([]byte("answer to "), m.Payload...)))
		}
		expect.OK(t, <-end)
	}
}

// A client is killed in the middle of a flood. Its port, its published memory and its
// place are there again; others notice nothing.
func TestAClientThatDiesCostsItselfOnly(t *testing.T) {
	w := open(t, 2, Config{})
	c := w.dial(t, ClientConfig{})
	h := expect.Get(c.Malloc(lite.RegionConfig{Name: "shared", Size: 4096, Nodes: []int{0}, Open: lite.PermAll}))(t)
	for range 2 { // the second one has the place of the first
		self := expect.Get(os.Executable())(t)
		cmd := exec.Command(self)
		cmd.Env = append(os.Environ(), dyingSocket+"="+w.path)
		out := expect.Get(cmd.StdoutPipe())(t)
		expect.OK(t, cmd.Start())
		line, _ := bufio.NewReader(out).ReadString('\n')
		if line != "ready\n" {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
			t.Fatalf("the dying said %q", line)
		}
		for i := range 200 {
			if err := c.Write(h, 1024, []byte{byte(i)}); err != nil {
				t.Error("beside a flood:", err)
			}
		}
		expect.OK(t, cmd.Process.Kill())
		_ = cmd.Wait() // killed
		until(t, "the end of the dead client", func() bool { return w.daemon.Clients() == 1 })
		until(t, "the death of its region", func() bool {
			_, err := c.Map("dying", lite.PermRead, "")
			return errors.Is(err, lite.ErrNoRegion)
		})
		until(t, "a free place", func() bool {
			w.daemon.mu.Lock()
			defer w.daemon.mu.Unlock()
			return !w.daemon.places[0].taken || !w.daemon.places[1].taken
		})
	}
	expect.OK(t, c.Write(h, 0, []byte("alive")))
	expect.OK(t, c.Serve(9, 64, 1)) // the port is free again
}

// A client that breaks the protocol is disconnected, and the others go on.
func TestAProtocolErrorEndsThatClientAlone(t *testing.T) {
	wrong := map[string]func(c *Client){
		"more requests than the ring has": func(c *Client) { c.page.word(wordPosted).Store(depth + 1) },
		"requests taken back":             func(c *Client) { c.page.word(wordPosted).Store(^uint32(0)) },
		"ends that were not there":        func(c *Client) { c.page.word(wordSeen).Store(7) },
		"a kind that does not exist":      func(c *Client) { c.raw(&request{kind: numKinds, local: dataAt}) },
		"an answer to nobody":             func(c *Client) { c.raw(&request{kind: kindReply, local: dataAt, handle: 3}) },
		"no JSON":                         func(c *Client) { _, _ = c.conn.Write([]byte("{")) },
		"a line without end":              func(c *Client) { _, _ = c.conn.Write(make([]byte, 2*lineMost)) },
	}
	w := open(t, 2, Config{})
	honest := w.dial(t, ClientConfig{})
	h := expect.Get(honest.Malloc(lite.RegionConfig{Name: "r", Size: 4096, Nodes: []int{0}, Open: lite.PermAll}))(t)
	for name, breakRules := range wrong {
		t.Run(name, func(t *testing.T) {
			var c *Client
			until(t, "a free place", func() (ok bool) {
				var err error
				c, err = Dial(soon(t), w.path, ClientConfig{})
				return err == nil
			})
			defer c.Close()
			breakRules(c)
			until(t, "the end of the client", c.ended.Load)
			expect.OK(t, honest.Write(h, 0, []byte("x")))
		})
	}
}

func (c *Client) raw(r *request) {
	_ = c.push(r)
	c.publish()
}

// Bounds are checked by the daemon, not by the client's good will.
func TestBytesOutsideThePlaceAreRefused(t *testing.T) {
	w := open(t, 2, Config{})
	c, other := w.dial(t, ClientConfig{}), w.dial(t, ClientConfig{})
	h := expect.Get(other.Malloc(lite.RegionConfig{Name: "secret", Size: 4096, Nodes: []int{0}}))(t)
	mine := expect.Get(c.Malloc(lite.RegionConfig{Name: "mine", Size: 4096, Nodes: []int{0}}))(t)
	size := uint64(len(c.page))
	for _, r := range []struct {
		what string
		r    request
		want error
	}{
		{"the front", request{kind: kindWrite, handle: uint64(mine), local: 0, len: 8}, lite.ErrMemory},
		{"the front, partly", request{kind: kindWrite, handle: uint64(mine), local: dataAt - 1, len: 8},
			lite.ErrMemory},
		{"over the end", request{kind: kindRead, handle: uint64(mine), local: size - 7, len: 8}, lite.ErrMemory},
		{"another place", request{kind: kindRead, handle: uint64(mine), local: size + dataAt, len: 8}, lite.ErrMemory},
		{"an offset that wraps", request{kind: kindRead, handle: uint64(mine), local: ^uint64(0) - 3, len: 8},
			lite.ErrMemory},
		{"a call's answer", request{kind: kindCall, node: 0, port: 1, local: dataAt, len: 8, off: size, room: 8},
			lite.ErrMemory},
		{"a message", request{kind: kindSend, node: 0, port: 1, local: size - 1, len: 8}, lite.ErrMemory},
		{"a receive", request{kind: kindRecv, port: 1, local: size - 1, room: 8}, lite.ErrMemory},
		{"outside the region", request{kind: kindRead, handle: uint64(mine), off: 4090, local: dataAt, len: 8},
			lite.ErrBounds},
		{"a handle of nobody", request{kind: kindRead, handle: uint64(mine) + 1, local: dataAt, len: 8},
			lite.ErrDeadHandle},
		{"a number of the node's own table", request{kind: kindRead, handle: 5 << 32, local: dataAt, len: 8},
			lite.ErrDeadHandle},
	} {
		expect.Is(t, r.what, expect.Err(c.run(&r.r)), r.want)
	}
	if h == mine {
		// Numbers are each client's own: the same one is another region.
		expect.OK(t, other.Write(h, 0, []byte("secret")))
		var b [6]byte
		expect.OK(t, c.Read(mine, 0, b[:]))
		if string(b[:]) == "secret" {
			t.Error("a number of its own reached another client's region")
		}
	}
	// A file that could shrink would take the daemon with it.
	if err := unix.Ftruncate(int(w.node.Segments()[0].File.Fd()), 0); err == nil {
		t.Error("the place could be shrunk")
	}
}

// One client posts as fast as it can; another's reads go on.
func TestAFloodLeavesOthersTheirTurn(t *testing.T) {
	w := open(t, 2, Config{})
	flood, c := w.dial(t, ClientConfig{}), w.dial(t, ClientConfig{})
	h := expect.Get(c.Malloc(lite.RegionConfig{Name: "r", Size: 8192, Nodes: []int{0}, Open: lite.PermAll}))(t)
	fh := expect.Get(flood.Map("r", lite.PermWrite, ""))(t)
	stop, end := make(chan struct{}), make(chan int, 1)
	go func() {
		var ops [64]lite.Op
		for i := range ops {
			ops[i] = lite.Op{Kind: lite.OpWrite, Handle: fh, Off: 4096, Local: dataAt, Len: 64}
		}
		var done [64]lite.Done
		sent := 0
		for {
			select {
			case <-stop:
				end <- sent
				return
			default:
			}
			n, _ := flood.Post(ops[:])
			sent += n
			_, _ = flood.Poll(done[:])
		}
	}()
	var b [8]byte
	for i := range 300 {
		if err := c.Read(h, 0, b[:]); err != nil {
			t.Error(i, err)
			break
		}
	}
	close(stop)
	if n := <-end; n == 0 {
		t.Error("there was no flood")
	}
}

func TestTheEndOfTheDaemonEndsClients(t *testing.T) {
	w := open(t, 1, Config{})
	c := w.dial(t, ClientConfig{})
	h := expect.Get(c.Malloc(lite.RegionConfig{Name: "r", Size: 4096, Nodes: []int{0}}))(t)
	expect.OK(t, w.daemon.Close())
	until(t, "the client's notice", c.ended.Load)
	expect.Is(t, "write", c.Write(h, 0, []byte("x")), lite.ErrClosed)
	expect.Is(t, "malloc", expect.Err(c.Malloc(lite.RegionConfig{Name: "s", Size: 1})), lite.ErrClosed)
}

func TestOneClientTooManyIsRefused(t *testing.T) {
	w := open(t, 1, Config{})
	w.dial(t, ClientConfig{})
	_, err := Dial(soon(t), w.path, ClientConfig{})
	if err == nil || !strings.Contains(err.Error(), "all 1 places") {
		t.Errorf("%v", err)
	}
}

func FuzzRequest(f *testing.F) {
	f.Add(make([]byte, requestLen))
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) < requestLen {
			return
		}
		var r, again request
		r.get(b)
		out := make([]byte, requestLen)
		r.put(out)
		if again.get(out); again != r {
			t.Errorf("%+v became %+v", r, again)
		}
		g := &conn{page: make(page, dataAt+4096)}
		if g.inPlace(r.local, r.len) && (r.local < dataAt || r.local+uint64(r.len) > uint64(len(g.page))) {
			t.Errorf("%d bytes at %d are no part of the place", r.len, r.local)
		}
	})
}
