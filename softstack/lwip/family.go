//go:build lwip && cgo

package lwip

// #include "lw.h"
import "C"

import (
	"context"
	"net"

	"github.com/rdmaperf/rdmaperf/softstack/shm"
)

// family is how two processes of link=shm meet. From then on an octet either way on their socket is a bell.
var family = &shm.Family{
	Name: "lwip", Magic: "rdmprin2", MinFrames: MinRing, MaxFrames: MaxRing,
	Size: func(h shm.Hello) int { return int(C.lw_shm_size(C.uint32_t(h.Frames))) },
}

// knock makes a link to the process that listens at port.
func knock(ctx context.Context, s *Stack, port string) (*link, error) {
	h := shm.Hello{Frames: s.cfg.Ring}
	c, mem, err := family.Knock(ctx, port, h)
	if err != nil {
		return nil, err
	}
	return newLink(s, c, mem, h.Frames, 0, port)
}

// admit makes a link of a process that knocked.
func (s *Stack) admit(c *net.UnixConn, mem []byte, h shm.Hello) {
	newLink(s, c, mem, h.Frames, 1, "") // where there is no room for it, it is shown out
}
