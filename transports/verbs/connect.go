//go:build cgo && linux

package verbs

// #include "shim.h"
import "C"

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"unsafe"

	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

var unspecified netip.Addr

// kernelGIDs entries of 32 bytes fit in the 16 bits that the call has for a length.
const kernelGIDs = 1024

// gids is the port's table by one call of the kernel's; sysfs has three files for each of up to a thousand slots.
func (d *Device) gids() ([]gidEntry, error) {
	entries := make([]C.struct_va_gid_entry, kernelGIDs)
	n := int(C.vb_gids(d.ctx, &entries[0], C.int(len(entries))))
	if n < 0 {
		return readGIDs(sysRoot, d.dev, d.port.num)
	}
	var table []gidEntry
	for _, e := range entries[:n] {
		if int(e.port_num) != d.port.num {
			continue
		}
		g := gidEntry{Index: int(e.gid_index), GID: *(*[16]byte)(unsafe.Pointer(&e.gid)), Type: gidType(e.gid_type)}
		if nic, err := net.InterfaceByIndex(int(e.ndev_ifindex)); err == nil {
			g.NetDev = nic.Name
		}
		table = append(table, g)
	}
	slices.SortFunc(table, func(a, b gidEntry) int { return cmp.Compare(a.Index, b.Index) })
	return table, nil
}

// The numbers of gidType are the kernel's.
var (
	_ = [1]byte{}[gidIB-C.VA_GID_TYPE_IB]
	_ = [1]byte{}[gidRoCEv1-C.VA_GID_TYPE_ROCE_V1]
	_ = [1]byte{}[gidRoCEv2-C.VA_GID_TYPE_ROCE_V2]
)

// gid is the configured entry of the port's GID table, or the best for a peer that is reached by local.
func (d *Device) gid(local netip.Addr) (gidEntry, error) {
	table, err := d.gids()
	if err != nil {
		return gidEntry{}, err
	}
	if d.cfg.GIDIndex >= 0 {
		return gidAt(table, d.cfg.GIDIndex)
	}
	return chooseGID(table, local)
}

func (d *Device) addrs() []netip.Addr {
	table, err := d.gids()
	if err != nil {
		return nil // no address is known
	}
	return deviceAddrs(table)
}

// ListenHost is an address of the port's network interface, by which peers reach it; empty when it has none.
func (d *Device) ListenHost() string {
	own := d.addrs()
	if len(own) == 0 {
		return ""
	}
	i := max(0, slices.IndexFunc(own, netip.Addr.Is4))
	return own[i].String()
}

func (d *Device) checkParam(p *rdma.ConnParam) error {
	most := d.caps.MaxRDAtom
	switch {
	case p.IRD < 0 || p.IRD > most || p.ORD < 0 || p.ORD > most:
		return fmt.Errorf("ird %d, ord %d, limit %d: %w", p.IRD, p.ORD, most, rdma.ErrInvalid)
	case len(p.PrivateData) > d.caps.MaxPrivate:
		return fmt.Errorf("private data of %d bytes, limit %d: %w", len(p.PrivateData), d.caps.MaxPrivate,
			rdma.ErrInvalid)
	case p.RNRRetry < 0 || p.RNRRetry > 7:
		return fmt.Errorf("rnr retry %d: %w", p.RNRRetry, rdma.ErrInvalid)
	}
	return nil
}

// claim marks an INIT QP as connecting until ctx or answerTimeout ends, or the QP is closed.
func (q *qp) claim(ctx context.Context) (context.Context, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case q.isClosed():
		return nil, rdma.ErrClosed
	case q.now() != rdma.QPInit || q.busy != nil:
		return nil, fmt.Errorf("qp is %s: %w", q.now(), rdma.ErrState)
	}
	ctx, cancel := withTimeout(ctx)
	q.busy = &attempt{cancel, make(chan struct{})}
	return ctx, nil
}

func (q *qp) release() {
	q.mu.Lock()
	a := q.busy
	q.busy = nil
	q.mu.Unlock()
	a.cancel()
	close(a.done)
}

func (q *qp) join(l link, p *rdma.ConnParam) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.peer = l
	q.noReads.Store(p.ORD == 0)
	q.state.CompareAndSwap(uint32(rdma.QPInit), uint32(rdma.QPRTS))
	q.tells = q.ask() == rdma.QPRTS
}

// spoilt moves a QP whose connection failed half-way to ERR: it has met a peer and cannot be connected again.
func (q *qp) spoilt() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.enterErr()
}

func (q *qp) Connect(ctx context.Context, addr string, p rdma.ConnParam) (rdma.ConnParam, error) {
	var got rdma.ConnParam
	err := q.dev.checkParam(&p)
	if err == nil {
		ctx, err = q.claim(ctx)
	}
	if err == nil {
		if q.dev.cm != nil {
			got, err = q.connectCM(ctx, addr, p)
		} else {
			got, err = q.connectExchange(ctx, addr, p)
		}
		q.release()
	}
	if err != nil {
		return rdma.ConnParam{}, &rdma.OpError{Op: "connect", Object: addr, Err: err}
	}
	return got, nil
}

// Listen takes connections at addr.
func (d *Device) Listen(ctx context.Context, addr string, backlog int) (rdma.Listener, error) {
	fail := func(err error) (rdma.Listener, error) {
		return nil, &rdma.OpError{Op: "listen", Object: addr, Err: err}
	}
	if err := ctx.Err(); err != nil {
		return fail(err)
	}
	if backlog < 0 {
		return fail(rdma.ErrInvalid)
	}
	d.mu.Lock()
	closed := d.closed
	d.mu.Unlock()
	if closed {
		return fail(rdma.ErrClosed)
	}
	var l rdma.Listener
	var err error
	if d.cm != nil {
		l, err = d.cm.listen(ctx, addr, max(backlog, 1))
	} else {
		l, err = d.listenPort(ctx, addr, backlog)
	}
	if err != nil {
		return fail(err)
	}
	d.count(1)
	return l, nil
}

// accept claims the QP for answer, which is not called for arguments that cannot be.
func (d *Device) accept(ctx context.Context, remote string, peer rdma.QP, p rdma.ConnParam,
	answer func(ctx context.Context, q *qp) (rdma.ConnParam, error)) (got rdma.ConnParam, err error) {
	q, _ := peer.(*qp)
	if err = d.checkParam(&p); err == nil && (q == nil || q.dev != d) {
		err = fmt.Errorf("no qp of this device: %w", rdma.ErrInvalid)
	}
	if err == nil {
		ctx, err = q.claim(ctx)
	}
	if err == nil {
		got, err = answer(ctx, q)
		q.release()
	}
	if err != nil {
		return rdma.ConnParam{}, &rdma.OpError{Op: "accept", Object: remote, Err: err}
	}
	return got, nil
}
