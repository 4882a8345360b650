package run

import (
	"context"
	"io"
	"log/slog"
	"net"
	"os"

	"golang.org/x/sys/unix"
)

// Measuring is the name that a run holds while it measures, of the abstract namespace (unix(7)), which the kernel frees
// with the process. A variable for tests; empty for none.
var Measuring = "@rdmaperf/measuring"

// hold says that this process measures on this machine, until the closer is closed. Where another run does, the log has
// its process.
func hold(ctx context.Context, log *slog.Logger, name string) io.Closer {
	if name == "" {
		return io.NopCloser(nil)
	}
	l, err := new(net.ListenConfig).Listen(ctx, "unix", name)
	if err == nil {
		return l
	}
	if pid := holder(ctx, name); pid != 0 && pid != os.Getpid() {
		log.Warn("another run measures on this machine: the figures of both include its load", "process", pid)
	}
	return io.NopCloser(nil)
}

// holder is the process that holds name; 0 for none, or for one of another process namespace.
func holder(ctx context.Context, name string) (pid int) {
	c, err := new(net.Dialer).DialContext(ctx, "unix", name)
	if err != nil {
		return 0
	}
	defer c.Close()
	raw, err := c.(*net.UnixConn).SyscallConn()
	if err != nil {
		return 0
	}
	raw.Control(func(fd uintptr) {
		if cred, err := unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED); err == nil {
			pid = int(cred.Pid)
		}
	})
	return pid
}
