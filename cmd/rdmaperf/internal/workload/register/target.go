package register

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/arms"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/pairs"
	"github.com/rdmaperf/rdmaperf/internal/freemem"
	"github.com/rdmaperf/rdmaperf/regcache"
	"github.com/rdmaperf/rdmaperf/regcache/pin"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// UseBytes is the most that one use of a registration moves: a page does not hide what registering cost.
const UseBytes = 4096

// Target is what memory is registered with, and how a registration is used.
type Target struct {
	Name string
	Reg  regcache.Registrar
	Most int  // bytes that one registration may have; 0: no limit is known
	ODP  bool // it registers with rdma.OnDemand

	// use has the device place n bytes at the end of registered memory, and compares them.
	use   func(lkey uint32, buf rdma.Buffer, number uint64) error
	close func() error

	uses, bytes int64 // that compared same
}

// compared is use, and counts what was compared.
func (t *Target) compared(lkey uint32, buf rdma.Buffer, number uint64) error {
	err := t.use(lkey, buf, number)
	if err == nil {
		t.uses++
		t.bytes += int64(min(buf.Len(), UseBytes))
	}
	return err
}

// ErrOther is data in registered memory that is not what was sent there.
var ErrOther = errors.New("the registered memory does not hold what was moved there")

// Close ends what the target needed for itself. A device stays its owner's.
func (t *Target) Close() error { return t.close() }

// PinMost is how many bytes Pin registers at once (io_uring_register(2)).
const PinMost = 1 << 30

// Pin is the registrar that pins pages through io_uring: registration without a device.
func Pin() (*Target, error) {
	g, err := pin.Open(pin.Config{})
	if err != nil {
		return nil, err
	}
	src := make([]byte, UseBytes)
	return &Target{Name: "pin", Reg: g, Most: PinMost, close: g.Close,
		use: func(lkey uint32, buf rdma.Buffer, number uint64) error {
			n := min(buf.Len(), UseBytes)
			fill(src[:n], number)
			if err := g.Write(lkey, buf.Addr()+uint64(buf.Len()-n), src[:n]); err != nil {
				return err
			}
			return holds(buf, src[:n])
		}}, nil
}

func fill(p []byte, number uint64) {
	var word [8]byte
	binary.LittleEndian.PutUint64(word[:], number*0x9e3779b97f4a7c15+1)
	for n := copy(p, word[:]); n < len(p); n *= 2 {
		copy(p[n:], p[:n])
	}
}

func holds(buf rdma.Buffer, p []byte) error {
	if !bytes.Equal(buf.Bytes()[buf.Len()-len(p):], p) {
		return ErrOther
	}
	return nil
}

// limit bounds every wait of a device. Arbitrary.
const limit = 10 * time.Second

// loop is a connection of a device to itself: the far end's window is read into registered memory.
type loop struct {
	*pairs.Devices
	window rdma.Buffer
	mr     rdma.MR
}

// Device is an RDMA device, with a connection to itself.
func Device(dev rdma.Device) (*Target, error) {
	caps := dev.Caps()
	if err := caps.Missing(rdma.Need{Ops: rdma.Ops(rdma.OpRead)}); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	ends, err := pairs.OpenLoop(ctx, dev)
	if err != nil {
		return nil, err
	}
	l := &loop{Devices: ends}
	if l.window, err = rdma.Alloc(UseBytes); err == nil {
		l.mr, err = dev.RegMR(0, l.window, rdma.LocalWrite|rdma.RemoteRead)
	}
	if err != nil {
		return nil, errors.Join(err, l.Disconnect(), l.window.Free())
	}
	return &Target{Name: dev.Name(), Reg: dev, ODP: caps.OnDemand, use: l.use, close: l.close}, nil
}

func (l *loop) use(lkey uint32, buf rdma.Buffer, number uint64) error {
	n := min(buf.Len(), UseBytes)
	src := l.window.Bytes()[:n]
	fill(src, number)
	wr := [1]rdma.SendWR{{ID: number, Op: rdma.OpRead, Flags: rdma.Signaled, RemoteAddr: l.mr.Addr(), RKey: l.mr.RKey(),
		NumSGE: 1}}
	wr[0].SGE[0] = rdma.SGE{Addr: buf.Addr() + uint64(buf.Len()-n), Len: uint32(n), LKey: lkey}
	if _, err := l.QPs[0][0].PostSend(wr[:]); err != nil {
		return err
	}
	var wc [1]rdma.WC
	var end time.Time
	for polls := 0; ; polls++ {
		if _, err := l.CQs[1].Poll(nil); err != nil { // drives the far end of a software device
			return err
		}
		k, err := l.CQs[0].Poll(wc[:])
		switch {
		case err != nil:
			return err
		case k == 1 && wc[0].Status != rdma.StatusSuccess:
			return &rdma.StatusError{WC: wc[0]}
		case k == 1:
			return holds(buf, src)
		}
		if polls%1024 == 1023 {
			switch now := time.Now(); {
			case end.IsZero():
				end = now.Add(limit)
			case now.After(end):
				return fmt.Errorf("a read of %d bytes was not answered within %v", n, limit)
			}
		}
	}
}

func (l *loop) close() error { return errors.Join(l.Disconnect(), l.mr.Close(), l.window.Free()) }

// Most is how many bytes a point may have: at most what the target, if any, registers, a quarter of available memory,
// and half of what may be locked. Of a cache's working set that half holds one buffer, as the cache gives up unused
// ones. why names the least.
func Most(t *Target, p Point) (n int, why string) {
	n, why = 1<<40, "no limit is known"
	least := func(v int, s string) {
		if v < n {
			n, why = v, s
		}
	}
	if t != nil && t.Most > 0 {
		least(t.Most, fmt.Sprintf("%s registers at most %d bytes at once", t.Name, t.Most))
	}
	if v := int(freemem.Bytes()); v >= 0 {
		least(v/4, fmt.Sprintf("a quarter of the %d bytes of memory that are available", v))
	}
	evicts := p.Pattern == PatternSet && p.Arm == arms.Cache
	if v, limited := lockable(); limited && !(evicts && p.Size <= v/2) {
		least(v/2, fmt.Sprintf("half of the %d bytes that may be locked (ulimit -l)", v))
	}
	return n, why
}

// lockable is RLIMIT_MEMLOCK, without CAP_IPC_LOCK.
func lockable() (bytes int, limited bool) {
	hdr := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capget(&hdr, &data[0]); err == nil && data[0].Effective&(1<<unix.CAP_IPC_LOCK) != 0 {
		return 0, false
	}
	var lim unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_MEMLOCK, &lim); err != nil || lim.Cur > 1<<40 {
		return 0, false
	}
	return int(lim.Cur), true
}
