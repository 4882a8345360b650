package verbs

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

func TestFailedCallsNameTheirCauseAndAWayOut(t *testing.T) {
	for _, c := range []struct {
		err  error
		text string
		kind error
		try  string // "" for no advice
	}{
		{failed(opOpen, "rxe0", syscall.ENOENT),
			"open device rxe0: it has no character device in /dev/infiniband (no such file or directory)",
			rdma.ErrNoDevice, "modprobe ib_uverbs"},
		{failed(opOpen, "rxe0", fmt.Errorf("wrapped: %w", syscall.EACCES)),
			"open device rxe0: no permission for /dev/infiniband (wrapped: permission denied)", syscall.EACCES, "root"},
		{failed(opOpen, "rxe0", syscall.EIO), "open device rxe0: input/output error", syscall.EIO, ""},
		{failed(opResolve, "10.0.0.2", syscall.ENODEV),
			"resolve address 10.0.0.2: the interface that leads there has no RDMA device (no such device)",
			rdma.ErrUnreachable, "RDMA interface"},
		{failed(opToRTR, "10.0.0.2", syscall.EINVAL),
			"move qp to rtr 10.0.0.2: the port cannot address the peer's gid with the chosen one (invalid argument)",
			rdma.ErrFabric, "-x"},
		{failed(opBind, "10.0.0.2:7174", syscall.EADDRINUSE), "bind rdma_cm to 10.0.0.2:7174: address already in use",
			rdma.ErrAddrInUse, "another port"},
		{failed(opCreateCQ, "depth 8", errNoErrno), "create cq depth 8: the device's library gave no reason", nil,
			"dmesg"},
		{failed(opCreateQP, "", errors.New("strange")), "create qp: strange", nil, ""},
		{libraryMissing("libibverbs.so.1", "cannot open shared object file"),
			"load libibverbs.so.1: not run: an RDMA device needs it (cannot open shared object file)", rdma.ErrNoDevice,
			"install"},
		{deviceMissing("mlx5_9", nil), "open device mlx5_9: no such RDMA device; this machine has none",
			rdma.ErrNoDevice, "rdmaperf devices"},
		{deviceMissing("rxe", []string{"rxe0", "siw0"}),
			"open device rxe: no such RDMA device; this machine has rxe0, siw0", rdma.ErrNoDevice, "rdmaperf devices"},
		{portMissing("rxe0", 2, 1), "use port 2 of rxe0: it has port 1 only", rdma.ErrInvalid, "-i"},
		{portMissing("mlx4_0", 3, 2), "use port 3 of mlx4_0: it has 2 ports", rdma.ErrInvalid, "-i"},
		{portDown("rxe0", 1, "DOWN"), "use port 1 of rxe0: it is DOWN, not ACTIVE", rdma.ErrNoDevice, "ip link set up"},
	} {
		if c.err.Error() != c.text {
			t.Errorf("text %q, want %q", c.err, c.text)
		}
		if c.kind != nil && !errors.Is(c.err, c.kind) {
			t.Errorf("%q is no %q", c.err, c.kind)
		}
		if try := rdma.Advice(c.err); (try == "") != (c.try == "") || !strings.Contains(try, c.try) {
			t.Errorf("%q: advice %q, want some of %q", c.err, try, c.try)
		}
	}
}

func TestMemoryThatCannotBeLockedNamesTheLimit(t *testing.T) {
	low := failed(opRegister, "8 bytes", memlock(65536, syscall.ENOMEM))
	const want = "register memory 8 bytes: the limit of locked memory is 65536 bytes in all (cannot allocate memory)"
	if low.Error() != want || !strings.Contains(rdma.Advice(low), "ulimit -l unlimited") {
		t.Errorf("%q, advice %q, want %q", low, rdma.Advice(low), want)
	}
	if free := memlock(1<<64-1, syscall.ENOMEM); strings.Contains(free.Error(), "limit") || rdma.Advice(free) == "" {
		t.Errorf("without a limit: %q, advice %q", free, rdma.Advice(free))
	}
	if err := registerFailed(4096, syscall.ENOMEM); !errors.Is(err, syscall.ENOMEM) || rdma.Advice(err) == "" {
		t.Errorf("ENOMEM: %v", err)
	}
	if err := registerFailed(4096, syscall.EFAULT); !strings.Contains(err.Error(),
		"register memory 4096 bytes: the memory cannot be pinned") {
		t.Errorf("EFAULT: %v", err)
	}
}

func TestAFileThatMayNotBeOpenedIsNoMissingOne(t *testing.T) {
	file := filepath.Join(t.TempDir(), "uverbs0")
	if err := openFailed("rxe0", file, syscall.ENOENT); !errors.Is(err, rdma.ErrNoDevice) {
		t.Errorf("no file: %v", err)
	}
	noError(t, os.WriteFile(file, nil, 0))
	err := openFailed("rxe0", file, syscall.ENOENT)
	if forbidden := os.Getuid() != 0; errors.Is(err, syscall.EACCES) != forbidden {
		t.Errorf("a file that root alone may open, as uid %d: %v", os.Getuid(), err)
	}
}

// A row that an earlier one hides would never be read.
func TestExplanationsAreDistinct(t *testing.T) {
	type key struct {
		op    string
		errno syscall.Errno
	}
	seen := map[key]bool{}
	for _, e := range explanations {
		for _, errno := range e.errnos {
			if seen[key{e.op, errno}] {
				t.Errorf("%s with %v is given twice", e.op, errno)
			}
			seen[key{e.op, errno}] = true
		}
		if e.try == "" || strings.HasSuffix(e.try, ".") {
			t.Errorf("%s with %v: advice %q", e.op, e.errnos, e.try)
		}
	}
}

func TestListsStayShort(t *testing.T) {
	names := make([]string, 20)
	for i := range names {
		names[i] = fmt.Sprint("mlx5_", i)
	}
	if got := list(names); !strings.HasSuffix(got, "mlx5_7 and 12 more") {
		t.Error(got)
	}
	if got := list(names[:1]); got != "mlx5_0" {
		t.Error(got)
	}
}
