package carrier

import (
	"cmp"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/rdmaperf/rdmaperf/grpcrdma"
	"github.com/rdmaperf/rdmaperf/grpcrdma/bpev"
)

// Form is what carries the calls.
type Form uint8

const (
	TCP     Form = iota // grpc-go on TCP
	Unix                // grpc-go on a unix socket
	DropIn              // grpc-go on grpcrdma's byte stream
	Fused               // grpcrdma/fused on that byte stream
	BufConn             // grpc-go on memory that both ends share
	Service             // grpcrdma/fused by queues in shared memory to a process that has the device
	numForms
)

var formNames = [numForms]string{"tcp", "unix", "dropin", "fused", "bufconn", "service"}

// String is the name used on the command line and in results.
func (f Form) String() string {
	if f < numForms {
		return formNames[f]
	}
	return "form?"
}

// ParseForm is the inverse of String.
func ParseForm(s string) (Form, bool) {
	i := slices.Index(formNames[:], s)
	return Form(max(i, 0)), i >= 0
}

// OverRDMA is true for the forms that need a device.
func (f Form) OverRDMA() bool { return f == DropIn || f.Frames() }

// Frames is true for the forms whose calls are frames of package fused, without HTTP/2.
func (f Form) Frames() bool { return f == Fused || f == Service }

// Options are gRPC's own for the forms with HTTP/2, on both sides alike. A zero field is gRPC's default.
type Options struct {
	// Best sets zero fields to what measured best on TCP over loopback: some 15 % less time for 1 MiB with 8 outstanding.
	Best        bool
	ReadBuffer  int // bytes read at once; gRPC's default is 32 KiB
	WriteBuffer int // bytes gathered before a write; likewise 32 KiB
	Window      int // flow control of a stream and of a connection, fixed; by default it follows an estimate
	Workers     int // goroutines of a server that wait for calls; by default each call gets a new one
}

// ErrConfig: a configuration that makes no sense.
var ErrConfig = errors.New("invalid carrier configuration")

// Config chooses a carrier. The zero value is grpc-go on TCP with its defaults.
type Config struct {
	Form    Form
	Options Options         // not for Fused
	Net     grpcrdma.Config // for the forms over RDMA
	// NoSink has long messages come through the ring (fused.Config.Sinks). Fused only.
	NoSink bool
	// Command runs the process of a Service: what it starts calls RunService.
	Command []string
}

func (c Config) normal() (Config, error) {
	if c.Form >= numForms {
		return c, fmt.Errorf("form %d: %w", c.Form, ErrConfig)
	}
	if c.Form.Frames() && c.Options != (Options{}) {
		return c, fmt.Errorf("options of HTTP/2 for the form %v, which has none: %w", c.Form, ErrConfig)
	}
	if c.NoSink && c.Form != Fused {
		return c, fmt.Errorf("no sinks for the form %v, which has none: %w", c.Form, ErrConfig)
	}
	if (c.Form == Service) != (len(c.Command) > 0) {
		return c, fmt.Errorf("form %v with a command of %d words: %w", c.Form, len(c.Command), ErrConfig)
	}
	o := &c.Options
	for _, v := range []struct {
		what string
		n    int
		most int
	}{{"read buffer", o.ReadBuffer, 1 << 30}, {"write buffer", o.WriteBuffer, 1 << 30}, {"window", o.Window, 1<<31 - 1},
		{"workers", o.Workers, 1 << 16}} {
		if v.n < 0 || v.n > v.most {
			return c, fmt.Errorf("%s %d, want 0 to %d: %w", v.what, v.n, v.most, ErrConfig)
		}
	}
	if o.Window > 0 && o.Window < minWindow {
		return c, fmt.Errorf("window %d, want %d or more: gRPC takes less for no wish: %w", o.Window, minWindow, ErrConfig)
	}
	if o.Best {
		o.ReadBuffer, o.WriteBuffer = cmp.Or(o.ReadBuffer, 1<<20), cmp.Or(o.WriteBuffer, 1<<20)
		o.Window, o.Workers = cmp.Or(o.Window, 64<<20), cmp.Or(o.Workers, runtime.GOMAXPROCS(0))
	}
	return c, nil
}

// minWindow is HTTP/2's initial window (RFC 9113 §6.9.2).
const minWindow = 64 << 10

// name is the layer with everything that distinguishes results. net is the configuration in use.
func (c *Config) name(net grpcrdma.Config) string {
	parts := []string{c.Form.String()}
	if c.Form.OverRDMA() {
		p, _ := net.Polling.Normal()
		parts = append(parts, p.Mode.String())
		if p.Mode == bpev.BPEV {
			parts = append(parts, "busy="+ascii(max(p.BusyTime, 0)), fmt.Sprintf("pollers=%d", p.Pollers),
				"idle="+ascii(max(p.IdleSleep, 0)))
		}
		parts = append(parts, "ring="+size(net.Ring))
		if net.SendBuffer != net.Ring/2 {
			parts = append(parts, "send="+size(net.SendBuffer))
		}
		parts = append(parts, net.Arrival.String())
	}
	if c.NoSink {
		parts = append(parts, "noland")
	}
	o := &c.Options
	if o.Best {
		parts = append(parts, "best")
	}
	for _, v := range []struct {
		key   string
		n     int
		bytes bool
	}{{"read", o.ReadBuffer, true}, {"write", o.WriteBuffer, true}, {"window", o.Window, true},
		{"workers", o.Workers, false}} {
		switch {
		case v.n == 0:
		case v.bytes:
			parts = append(parts, v.key+"="+size(v.n))
		default:
			parts = append(parts, fmt.Sprintf("%s=%d", v.key, v.n))
		}
	}
	return "grpc(" + strings.Join(parts, ",") + ")"
}

func ascii(d time.Duration) string { return strings.ReplaceAll(d.String(), "µ", "u") }

func size(n int) string {
	for _, u := range []struct {
		shift int
		name  string
	}{{30, "G"}, {20, "M"}, {10, "K"}} {
		if n > 0 && n&(1<<u.shift-1) == 0 {
			return fmt.Sprintf("%d%s", n>>u.shift, u.name)
		}
	}
	return fmt.Sprint(n)
}
