package rdmaenv

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"strings"
	"sync"

	"google.golang.org/grpc"

	"github.com/rdmaperf/rdmaperf/grpcrdma"
	"github.com/rdmaperf/rdmaperf/softstack/iwarp"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
	"github.com/rdmaperf/rdmaperf/transports/verbs"
)

// Variable names the environment variable that is read.
const Variable = "GRPC_RDMA"

// ErrVariable: the environment variable is not as the package describes.
var ErrVariable = errors.New("invalid value of " + Variable)

type wish struct {
	device string // auto, verbs, verbs:NAME, iwarp or off
	cfg    grpcrdma.Config
}

func parse(value string) (w wish, err error) {
	for part := range strings.SplitSeq(value, ",") {
		switch part = strings.TrimSpace(part); {
		case part == "bpev" || part == "bp" || part == "event":
			err = w.cfg.Polling.Mode.UnmarshalText([]byte(part))
		case part == "":
		case w.device != "":
			err = fmt.Errorf("two devices, %q and %q", w.device, part)
		case part == "auto", part == "verbs", part == "iwarp", part == "off",
			strings.HasPrefix(part, "verbs:") && len(part) > len("verbs:"):
			w.device = part
		default:
			err = fmt.Errorf("%q is none of auto, verbs, verbs:DEVICE, iwarp, off, bpev, bp and event", part)
		}
		if err != nil {
			return w, fmt.Errorf("%w: %w", ErrVariable, err)
		}
	}
	if w.device == "" {
		w.device = "auto"
	}
	return w, nil
}

// open makes connections over what the wish names; nil for TCP.
func (w wish) open() (*grpcrdma.Net, error) {
	var dev rdma.Device
	var err error
	switch name, chosen, _ := strings.Cut(w.device, ":"); {
	case name == "off":
		return nil, nil
	case name == "verbs":
		dev, err = openVerbs(chosen)
	case name == "auto":
		if dev, err = openVerbs(""); err == nil {
			break
		}
		fallthrough
	default:
		dev, err = iwarp.Open(iwarp.Config{})
	}
	if err != nil {
		return nil, err
	}
	n, err := grpcrdma.New(dev, w.cfg)
	if err != nil {
		return nil, errors.Join(err, dev.Close())
	}
	return n, nil
}

// openVerbs opens a device; an empty name is the first with an ACTIVE port.
func openVerbs(name string) (rdma.Device, error) {
	c := verbs.Default()
	c.Device = name
	return verbs.Open(c)
}

var shared = sync.OnceValues(func() (*grpcrdma.Net, error) {
	w, err := parse(os.Getenv(Variable))
	if err != nil {
		return nil, err
	}
	n, err := w.open()
	if err != nil {
		slog.Default().Warn("rdma is not used", Variable, w.device, "cause", err)
	}
	return n, nil // TCP then
})

// Listen is net.Listen over the device of the process. Errors are ErrVariable, and those of grpcrdma or net.
func Listen(network, addr string) (net.Listener, error) {
	n, err := shared()
	switch {
	case err != nil:
		return nil, err
	case n == nil:
		return net.Listen(network, addr)
	}
	return n.Listen(context.Background(), addr)
}

// WithRDMA has a client dial over the device of the process, and over TCP where the peer has no RDMA.
func WithRDMA() grpc.DialOption {
	n, err := shared()
	if err != nil {
		return grpc.WithContextDialer(func(context.Context, string) (net.Conn, error) { return nil, err })
	}
	return (&grpcrdma.Dialer{Net: n}).DialOption()
}
