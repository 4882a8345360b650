package target

import (
	"errors"
	"fmt"
	"hash/crc32"

	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

type bench struct {
	dev     rdma.Device
	host    string // where it listens
	caps    rdma.Caps
	arena   rdma.Buffer
	other   rdma.PD
	hasPD   bool
	mrs     map[string]rdma.MR
	regions map[string]Region
}

func openBench(c *Config, variant, host string) (_ *bench, err error) {
	dev, at, err := c.Open(variant)
	if err != nil {
		return nil, err
	}
	if at != "" {
		host = at
	}
	b := &bench{dev: dev, host: host, caps: dev.Caps(), mrs: map[string]rdma.MR{}, regions: map[string]Region{}}
	defer func() {
		if err != nil {
			err = errors.Join(err, b.close())
			b = nil
		}
	}()
	if b.arena, err = rdma.Alloc(arenaLen); err != nil {
		return b, err
	}
	if b.other, err = dev.AllocPD(); err != nil {
		return b, err
	}
	b.hasPD = true
	remote := rdma.LocalWrite | rdma.RemoteWrite | rdma.RemoteRead
	all := remote
	if b.caps.Ops.Has(rdma.OpFetchAdd) {
		all |= rdma.RemoteAtomic
	}
	for _, r := range []struct {
		name   string
		pd     rdma.PD
		off, n int
		access rdma.Access
		maybe  bool
	}{
		{AllRights, 0, targetOff, targetLen, all, false},
		{NoRights, 0, quietOff, smallLen, rdma.LocalWrite, false},
		{Readable, 0, readOff, smallLen, rdma.LocalWrite | rdma.RemoteRead, false},
		{OtherPD, b.other, farOff, smallLen, remote, false},
		{Revocable, 0, revokeOff, smallLen, remote | rdma.RemoteInvalidate, true},
		{Work, 0, workOff, smallLen, remote, false},
		{Receives, 0, recvOff, recvLen, rdma.LocalWrite, false},
		{Freed, 0, readOff, smallLen, remote, false},
	} {
		err := b.register(r.name, r.pd, r.off, r.n, r.access)
		if r.maybe && errors.Is(err, rdma.ErrNotSupported) {
			continue
		}
		if err != nil {
			return b, fmt.Errorf("register %s: %w", r.name, err)
		}
	}
	err = b.mrs[Freed].Close()
	delete(b.mrs, Freed)
	return b, err
}

func (b *bench) register(name string, pd rdma.PD, off, n int, access rdma.Access) error {
	part, err := b.arena.Slice(off, n)
	if err != nil {
		return err
	}
	mr, err := b.dev.RegMR(pd, part, access)
	if err != nil {
		return err
	}
	b.mrs[name] = mr
	b.regions[name] = Region{STag: mr.RKey(), TO: mr.Addr(), Off: off, Len: n}
	return nil
}

// renew registers again what a peer may have revoked, and lays fresh canaries.
func (b *bench) renew() error {
	fillCanaries(b.arena.Bytes())
	mr := b.mrs[Revocable]
	if mr == nil {
		return nil
	}
	access := mr.Access()
	if err := mr.Close(); err != nil {
		return err
	}
	return b.register(Revocable, 0, revokeOff, smallLen, access)
}

func (b *bench) memory(sum uint32) *reply {
	m := b.arena.Bytes()
	if crc32.ChecksumIEEE(m) == sum {
		return &reply{Same: true}
	}
	return &reply{Memory: m}
}

func (b *bench) close() error {
	var errs []error
	for _, mr := range b.mrs {
		errs = append(errs, mr.Close())
	}
	if b.hasPD {
		errs = append(errs, b.dev.FreePD(b.other))
	}
	errs = append(errs, b.dev.Close())
	if b.arena.Len() > 0 {
		errs = append(errs, b.arena.Free())
	}
	return errors.Join(errs...)
}
