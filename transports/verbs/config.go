package verbs

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// Config chooses a device and how its connections are made. The zero value is the first device with an active port, its
// first such port, a GID chosen by the address of each connection, and the out-of-band exchange; see [Default].
type Config struct {
	Device   string // "mlx5_0"; empty takes the first with an active port
	Port     int    // 1 is the first; 0 takes the first active one
	GIDIndex int    // entry of the port's GID table; -1 chooses. Out-of-band only
	CM       bool   // connect by rdma_cm; always so on iWARP
	MTU      int    // path MTU in bytes, 256 to 4096; 0 takes the port's. Out-of-band only
	Timeout  int    // ack timeout exponent, 4.096 µs·2^n, 1..31; 0 means 14 (67 ms)
	Retry    int    // retries of a lost packet, 1..7; 0 means 6
	SL       int    // service level, 0..15. Out-of-band only
	TOS      int    // traffic class of the GRH (IBTA 8.3.3), 0..255; with rdma_cm its type of service
}

// Default leaves every choice to this package.
func Default() Config { return Config{GIDIndex: -1} }

const (
	defaultTimeout = 14
	defaultRetry   = 6 // 7 is for ever to rxe (rxe_completer), so that a dead peer would never show
)

func (c *Config) validate() error {
	bad := func(what string, v int) error {
		return &rdma.OpError{Op: "open", Object: c.name(), Err: fmt.Errorf("%s %d: %w", what, v, rdma.ErrInvalid)}
	}
	switch {
	case c.Port < 0 || c.Port > 255:
		return bad("port", c.Port)
	case c.GIDIndex < -1 || c.GIDIndex > 255:
		return bad("gid index", c.GIDIndex)
	case c.MTU != 0 && mtuCode(c.MTU) == 0:
		return bad("mtu (256, 512, 1024, 2048 or 4096)", c.MTU)
	case c.Timeout < 0 || c.Timeout > 31:
		return bad("timeout exponent", c.Timeout)
	case c.Retry < 0 || c.Retry > 7:
		return bad("retries", c.Retry)
	case c.SL < 0 || c.SL > 15:
		return bad("service level", c.SL)
	case c.TOS < 0 || c.TOS > 255:
		return bad("traffic class", c.TOS)
	}
	c.Timeout, c.Retry = cmp.Or(c.Timeout, defaultTimeout), cmp.Or(c.Retry, defaultRetry)
	return nil
}

// name is the stack name with what departs from the default and changes how packets travel: "verbs(cm,tos=104):siw0".
func (c *Config) name() string {
	var p []string
	if c.CM {
		p = append(p, "cm")
	}
	for _, n := range []struct {
		name         string
		value, usual int
	}{{"mtu", c.MTU, 0}, {"timeout", c.Timeout, defaultTimeout}, {"retry", c.Retry, defaultRetry}, {"sl", c.SL, 0},
		{"tos", c.TOS, 0}} {
		if n.value != 0 && n.value != n.usual {
			p = append(p, n.name+"="+strconv.Itoa(n.value))
		}
	}
	s := "verbs"
	if len(p) > 0 {
		s += "(" + strings.Join(p, ",") + ")"
	}
	if c.Device != "" {
		s += ":" + c.Device
	}
	return s
}

// mtuCode is the number that the verbs have for an MTU of 256..4096 bytes; 0 for others.
func mtuCode(bytes int) int {
	for code := 1; code <= 5; code++ {
		if bytes == 128<<code {
			return code
		}
	}
	return 0
}

// DeviceInfo describes one device of this machine.
type DeviceInfo struct {
	Name      string
	Transport string // "InfiniBand", "iWARP", "usnic" …
	Firmware  string
	Limits    Limits
	Ports     []PortInfo
}

// Limits are what a device can do at most (ibv_query_device(3)); what is left of it depends on its other users.
type Limits struct {
	QPs, SRQs, CQs, MRs int
	QPWR, SRQWR         int    // work requests a queue
	SGE                 int    // elements a work request
	CQE                 int    // completions a CQ
	RDAtom              int    // reads and atomics a QP may have outstanding, as target
	InitRDAtom          int    // the same as initiator
	MRSize              uint64 // bytes
	Atomics             bool
}

// PortInfo describes one port.
type PortInfo struct {
	Number    int
	Active    bool
	LinkLayer string // "InfiniBand" or "Ethernet"
	MTU       int    // active MTU, bytes
	MaxMsg    uint64 // bytes
}
