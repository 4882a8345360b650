package lite

// Access is LITE from inside the process (a [Client]) or through package daemon. It belongs to one goroutine.
type Access interface {
	Alloc(n int) ([]byte, error)
	Free(b []byte) error
	Offset(b []byte) (uint64, error)

	Malloc(r RegionConfig) (Handle, error)
	Publish(r RegionConfig, b []byte) (Handle, error)
	Map(name string, want Perm, password string) (Handle, error)
	Unmap(h Handle) error
	FreeRegion(h Handle) error
	Grant(h Handle, node int, perm Perm) error
	Move(h Handle, nodes ...int) (Handle, error)
	Size(h Handle) (uint64, error)

	Write(h Handle, off uint64, src []byte) error
	Read(h Handle, off uint64, dst []byte) error
	FetchAdd(h Handle, off uint64, add uint64) (old uint64, err error)
	CmpSwap(h Handle, off uint64, expect, swap uint64) (old uint64, err error)
	TestSet(h Handle, off uint64) (bool, error)
	Memset(h Handle, off uint64, b byte, n uint64) error
	Memmove(dst Handle, dstOff uint64, src Handle, srcOff, n uint64) error

	Post(ops []Op) (n int, err error)
	Poll(dst []Done) (n int, err error)

	Call(node, port int, req []byte) ([]byte, error)
	Send(node, port int, msg []byte) error
	Barrier(name string, count int) error

	Close() error
}

var _ Access = (*Client)(nil)
