package measure

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/rdmaperf/rdmaperf/regcache"
	"github.com/rdmaperf/rdmaperf/regcache/pin"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// UseBytes is the most that one use of a registration moves. Arbitrary: a page, so that
// a use says that the registration works and does not hide what it cost.
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

// Used is how many uses of registrations were compared, and their bytes.
func (t *Target) Used() (uses, bytes int64) { return t.uses, t.bytes }

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

// fill writes bytes that differ from those of other numbers.
func fill(p []byte, number uint64) {
	var word [8]byte
	binary.LittleEndian.PutUint64(word[:], number*0x9e3779b97f4a7c15+1)
	for n := copy(p, word[:]); n < len(p); n *= 2 {
		copy(p[n:], p[:n])
	}
}

// holds requires that the memory ends with p.
func holds(buf rdma.Buffer, p []byte) error {
	if !bytes.Equal(buf.Bytes()[buf.Len()-len(p):], p) {
		return ErrOther
	}
	return nil
}

// limit bounds every wait of a device. Arbitrary.
const limit = 10 * time.Second

// loop is a connection of a device to itself: the far end's window is read into
// registered memory.
type loop struct {
	cq       [2]rdma.CQ
	qp       [2]rdma.QP
	window   rdma.Buffer
	mr       rdma.MR
	listener rdma.Listener
}

// Device is an RDMA device, with a connection to itself over listen ("host:port").
func Device(dev rdma.Device, listen string) (*Target, error) {
	caps := dev.Caps()
	if err := caps.Missing(rdma.Need{Ops: rdma.Ops(rdma.OpRead)}); err != nil {
		return nil, err
	}
	l := new(loop)
	if err := l.open(dev, listen); err != nil {
		return nil, errors.Join(err, l.close())
	}
	return &Target{Name: dev.Name(), Reg: dev, ODP: caps.OnDemand, use: l.use, close: l.close}, nil
}

func (l *loop) open(dev rdma.Device, listen string) (err error) {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	for i := range l.cq {
		if l.cq[i], err = dev.NewCQ(16); err != nil {
			return err
		}
		if l.qp[i], err = dev.NewQP(rdma.QPConfig{SendCQ: l.cq[i], RecvCQ: l.cq[i], SendDepth: 4,
			RecvDepth: 4}); err != nil {
			return err
		}
	}
	if l.window, err = rdma.Alloc(UseBytes); err != nil {
		return err
	}
	if l.mr, err = dev.RegMR(0, l.window, rdma.LocalWrite|rdma.RemoteRead); err != nil {
		return err
	}
	if l.listener, err = dev.Listen(ctx, listen, 1); err != nil {
		return err
	}
	accepted := make(chan error, 1)
	go func() {
		req, err := l.listener.Accept(ctx)
		if err == nil {
			_, err = req.Accept(ctx, l.qp[1], rdma.ConnParam{IRD: 1, ORD: 1})
		}
		accepted <- err
	}()
	if _, err = l.qp[0].Connect(ctx, l.listener.Addr(), rdma.ConnParam{IRD: 1, ORD: 1}); err != nil {
		cancel()
	}
	return errors.Join(err, <-accepted)
}

// use reads the far window into the end of the memory.
func (l *loop) use(lkey uint32, buf rdma.Buffer, number uint64) error {
	n := min(buf.Len(), UseBytes)
	src := l.window.Bytes()[:n]
	fill(src, number)
	wr := [1]rdma.SendWR{{ID: number, Op: rdma.OpRead, Flags: rdma.Signaled, RemoteAddr: l.mr.Addr(), RKey: l.mr.RKey(),
		NumSGE: 1}}
	wr[0].SGE[0] = rdma.SGE{Addr: buf.Addr() + uint64(buf.Len()-n), Len: uint32(n), LKey: lkey}
	if _, err := l.qp[0].PostSend(wr[:]); err != nil {
		return err
	}
	var wc [1]rdma.WC
	var end time.Time
	for polls := 0; ; polls++ {
		if _, err := l.cq[1].Poll(nil); err != nil { // drives the far end of a software device
			return err
		}
		k, err := l.cq[0].Poll(wc[:])
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

func (l *loop) close() error {
	var errs []error
	if l.listener != nil {
		errs = append(errs, l.listener.Close())
	}
	for i := range l.qp {
		if l.qp[i] != nil {
			errs = append(errs, l.qp[i].Close())
		}
	}
	for i := range l.cq {
		if l.cq[i] != nil {
			errs = append(errs, l.cq[i].Close())
		}
	}
	if l.mr != nil {
		errs = append(errs, l.mr.Close())
	}
	return errors.Join(append(errs, l.window.Free())...)
}
