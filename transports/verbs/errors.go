package verbs

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// The verbs calls that fail for reasons a user can do something about, as the Op of a *rdma.OpError.
const (
	opLoad     = "load"            // libibverbs, librdmacm; object: the library
	opOpen     = "open device"     // ibv_open_device(3); object: the device
	opRegister = "register memory" // ibv_reg_mr(3); object: the size
	opCreateQP = "create qp"       // ibv_create_qp(3)
	opCreateCQ = "create cq"       // ibv_create_cq(3)
	opToRTR    = "move qp to rtr"  // ibv_modify_qp(3); object: the peer's address
	opCMOpen   = "open rdma_cm"    // rdma_create_event_channel(3)
	opBind     = "bind rdma_cm to" // rdma_bind_addr(3); object: the address
	opResolve  = "resolve address" // rdma_resolve_addr(3), rdma_resolve_route(3); object: the peer
	opReadGIDs = "read gids of"    // object: device and port
	opUseGID   = "use gid index"   // object: the index
	opUsePort  = "use port"        // object: port and device
)

type explanation struct {
	op     string
	errnos []syscall.Errno
	kind   error  // sentinel by which callers choose an exit code; nil: none
	cause  string // empty: the errno in words says it
	try    string
}

func of(errnos ...syscall.Errno) []syscall.Errno { return errnos }

const (
	smaller   = "fewer --qp or smaller depths"
	ownAddr   = "an address of the device's interface; rdmaperf devices names it"
	peerAddr  = "an address of the peer's RDMA interface"
	sameGIDs  = "-x for a gid of the same network on both sides"
	cgroupTry = "fewer --qp, or a higher rdma.max of the cgroup"
)

// The kernel's answers: drivers/infiniband/core/{uverbs_cmd,ucma,cma,addr,verbs}.c.
var explanations = []explanation{
	{opOpen, of(syscall.EACCES, syscall.EPERM), nil, "no permission for /dev/infiniband",
		"rdma-core's udev rules, or root"},
	{opOpen, of(syscall.ENOENT), rdma.ErrNoDevice, "it has no character device in /dev/infiniband",
		"modprobe ib_uverbs; in a container, --device /dev/infiniband"},
	{opOpen, of(syscall.ENODEV), rdma.ErrNoDevice, "it is gone", "rdmaperf devices"},
	{opOpen, of(syscall.ENOSYS), rdma.ErrNoDevice, "the kernel has no ib_uverbs", "modprobe ib_uverbs"},
	{opRegister, of(syscall.EFAULT), nil, "the memory cannot be pinned",
		"anonymous memory or huge pages, not a file of a network file system"},
	{opCreateQP, of(syscall.EINVAL), nil, "a depth, SGE or inline limit of the device",
		"a smaller --tx-depth, --rx-depth or --inline_size; rdmaperf devices shows the limits"},
	{opCreateQP, of(syscall.ENOMEM), nil, "the device has no room for another queue pair",
		smaller + "; rdmaperf devices shows the limits"},
	{opCreateQP, of(syscall.ENOSPC), nil, "the device has no queue pair left",
		"fewer --qp; rdma resource show qp lists who has them"},
	{opCreateQP, of(syscall.EAGAIN), nil, "the rdma cgroup's limit of objects is reached", cgroupTry},
	{opCreateCQ, of(syscall.EINVAL), nil, "deeper than the device's completion queues",
		"fewer --qp a thread, or smaller depths"},
	{opCreateCQ, of(syscall.ENOMEM), nil, "the device has no room for another completion queue", smaller},
	{opCreateCQ, of(syscall.EAGAIN), nil, "the rdma cgroup's limit of objects is reached", cgroupTry},
	{opToRTR, of(syscall.ETIMEDOUT), rdma.ErrUnreachable, "nobody answers for the peer's gid on this port's network",
		"ping that address through this port's interface; " + sameGIDs},
	{opToRTR, of(syscall.EHOSTUNREACH, syscall.ENETUNREACH), rdma.ErrUnreachable,
		"no route from this port's network to the peer's gid", sameGIDs},
	{opToRTR, of(syscall.EINVAL), rdma.ErrFabric, "the port cannot address the peer's gid with the chosen one",
		"-x for a gid of the same type on both sides; rdmaperf devices lists them"},
	{opCMOpen, of(syscall.ENOENT, syscall.ENODEV, syscall.ENXIO), rdma.ErrNoDevice, "the kernel has no rdma_ucm",
		"modprobe rdma_ucm"},
	{opCMOpen, of(syscall.EACCES), nil, "no permission for /dev/infiniband/rdma_cm", "rdma-core's udev rules, or root"},
	{opBind, of(syscall.EADDRINUSE), rdma.ErrAddrInUse, "", "another port"},
	{opBind, of(syscall.EADDRNOTAVAIL), rdma.ErrInvalid, "no interface here has this address", ownAddr},
	{opBind, of(syscall.ENODEV), rdma.ErrInvalid, "no RDMA device has this address", ownAddr},
	{opResolve, of(syscall.ENODEV, syscall.EADDRNOTAVAIL), rdma.ErrUnreachable,
		"the interface that leads there has no RDMA device", peerAddr},
	{opResolve, of(syscall.ENETUNREACH), rdma.ErrUnreachable, "no route", peerAddr},
	{opResolve, of(syscall.EHOSTUNREACH, syscall.ETIMEDOUT), rdma.ErrUnreachable, "nobody answers for that address",
		"ping; " + peerAddr},
}

var errNoErrno error = &rdma.AdviceError{Err: errors.New("the device's library gave no reason"),
	Try: "dmesg, where the kernel may have said more"}

// failed is a verbs call's error, with cause and advice where the errno tells; other errors stay as they are.
func failed(op, object string, err error) error {
	var errno syscall.Errno
	if errors.As(err, &errno) {
		for i := range explanations {
			if e := &explanations[i]; e.op == op && slices.Contains(e.errnos, errno) {
				err = e.wrap(err)
				break
			}
		}
	}
	return &rdma.OpError{Op: op, Object: object, Err: err}
}

func (e *explanation) wrap(err error) error {
	if e.cause != "" {
		err = fmt.Errorf("%s (%w)", e.cause, err)
	}
	if e.kind != nil {
		err = &kindError{e.kind, err}
	}
	return &rdma.AdviceError{Err: err, Try: e.try}
}

// kindError makes errors.Is find a sentinel whose words would repeat the cause's.
type kindError struct{ kind, err error }

func (e *kindError) Error() string   { return e.err.Error() }
func (e *kindError) Unwrap() []error { return []error{e.kind, e.err} }

// openFailed explains a device that cannot be opened through its file. libibverbs looks for the device under other
// names when it may not open that file, and then reports that it found none.
func openFailed(device, file string, err error) error {
	const readWrite = 6 // R_OK|W_OK of access(2)
	if errors.Is(err, syscall.ENOENT) && errors.Is(syscall.Access(file, readWrite), syscall.EACCES) {
		err = syscall.EACCES
	}
	return failed(opOpen, device, err)
}

// registerFailed explains a failed registration of size bytes. Pinned memory counts against RLIMIT_MEMLOCK unless the
// process has CAP_IPC_LOCK (ib_umem_get in drivers/infiniband/core/umem.c), and the answer is ENOMEM.
func registerFailed(size uint64, err error) error {
	var lim syscall.Rlimit
	if errors.Is(err, syscall.ENOMEM) && syscall.Getrlimit(rlimitMemlock, &lim) == nil {
		err = memlock(lim.Cur, err)
	}
	return failed(opRegister, strconv.FormatUint(size, 10)+" bytes", err)
}

// rlimitMemlock is RLIMIT_MEMLOCK of getrlimit(2), which package syscall lacks.
const rlimitMemlock = 8

func memlock(limit uint64, err error) error {
	const unlimited = 1<<64 - 1
	if limit == unlimited {
		return &rdma.AdviceError{Err: fmt.Errorf("the device or the machine has no room for it (%w)", err),
			Try: "smaller --size, or fewer --qp"}
	}
	return &rdma.AdviceError{
		Err: fmt.Errorf("the limit of locked memory is %d bytes in all (%w)", limit, err),
		Try: "ulimit -l unlimited, LimitMEMLOCK=infinity in a systemd unit, or --ulimit memlock=-1 for a container",
	}
}

// libraryMissing explains why a library could not be opened; why is dlerror(3).
func libraryMissing(name, why string) error {
	return &rdma.OpError{Op: opLoad, Object: name, Err: &rdma.AdviceError{
		Err: &kindError{rdma.ErrNoDevice, fmt.Errorf("not run: an RDMA device needs it (%s)", why)},
		Try: "apt install ibverbs-providers librdmacm1, or dnf install libibverbs librdmacm",
	}}
}

func deviceMissing(name string, there []string) error {
	cause := errors.New("no such RDMA device; this machine has none")
	if len(there) > 0 {
		cause = fmt.Errorf("no such RDMA device; this machine has %s", list(there))
	}
	return &rdma.OpError{Op: opOpen, Object: name, Err: &rdma.AdviceError{Err: &kindError{rdma.ErrNoDevice, cause},
		Try: "rdmaperf devices"}}
}

func portMissing(device string, port, ports int) error {
	count := "it has " + strconv.Itoa(ports) + " ports"
	if ports == 1 {
		count = "it has port 1 only"
	}
	return &rdma.OpError{Op: opUsePort, Object: strconv.Itoa(port) + " of " + device,
		Err: &rdma.AdviceError{Err: &kindError{rdma.ErrInvalid, errors.New(count)}, Try: "-i with one that exists"}}
}

func portDown(device string, port int, state string) error {
	return &rdma.OpError{Op: opUsePort, Object: strconv.Itoa(port) + " of " + device, Err: &rdma.AdviceError{
		Err: &kindError{rdma.ErrNoDevice, fmt.Errorf("it is %s, not ACTIVE", state)},
		Try: "ip link set up for its interface, the cable or the subnet manager, or another port with -i",
	}}
}

func list(names []string) string {
	const show = 8
	if len(names) > show {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:show], ", "), len(names)-show)
	}
	return strings.Join(names, ", ")
}
