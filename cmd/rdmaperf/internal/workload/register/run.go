// Package register is the workload of registrations on this machine alone: the cost of having memory registered, used
// and given up, by the device, through a cache, and from memory registered when mapped. Without --transport it pins
// pages through io_uring.
//
// A use moves at most [UseBytes]. Look-ups are shorter than a reading of the clock: a sample is the mean of a batch,
// and percentiles are those of means. Stages of fresh memory are timed one by one.
package register

import (
	"context"
	"errors"
	"fmt"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/arms"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/drive"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/regcache"
	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

func (*Workload) Client(ctx context.Context, r *engine.Run) (err error) {
	o, err := engine.ReadOptions(r.Point, (*options).check)
	if err != nil {
		return err
	}
	t, end, err := target(r, o.Pin)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, end()) }()
	p, err := o.point(r.Point.Size)
	if err != nil {
		return err
	}
	if most, why := Most(t, p); p.Bytes() > most {
		if !o.Asked {
			return nil // of the sizes that nobody named, those that fit
		}
		return &reports.ExitError{Code: reports.ExitNotRun, Operation: r.Point.String(),
			Err: aboveLimit(p.Bytes(), most, why), Hint: "a smaller -s"}
	}
	if o.Arm == arms.ODP && !t.ODP {
		if !o.Alone {
			return nil // the rows of other arms say so
		}
		return &reports.ExitError{Code: reports.ExitNotRun, Operation: r.Point.String(),
			Err:  fmt.Errorf("%s declares no on-demand paging: %w", t.Name, rdma.ErrNotSupported),
			Hint: "an adapter with it (ibv_devinfo -v: general_odp_caps), or rxe of Linux 6.14 or newer"}
	}
	absent := map[string]string{}
	if o.Source != "" {
		granted := Sources(t)
		if why := granted[o.Source]; why != nil {
			if !o.Named {
				return nil // the row of auto says why
			}
			return &reports.ExitError{Code: reports.ExitNotRun, Operation: "notice by " + o.Source +
				" that memory goes away", Err: why, Hint: "--source auto, the strongest that the system grants"}
		}
		for s, why := range granted {
			if why != nil && o.Source == regcache.SourceAuto.String() {
				absent["source "+s] = why.Error()
			}
		}
	}
	d, err := Run(ctx, t, p, o.Window, r.Plan.Seed)
	if errors.Is(err, ErrOther) {
		return &reports.ExitError{Code: reports.ExitCorruption, Operation: r.Point.String(), Err: err}
	}
	if err != nil {
		return err
	}
	if err := CheckStale(d); err != nil {
		return &reports.ExitError{Code: reports.ExitCorruption, Operation: r.Point.String(), Err: err}
	}
	if o.ODP && !t.ODP {
		absent[arms.ODP] = t.Name + " declares no on-demand paging"
	}
	if len(absent) > 0 {
		d.Absent = absent
	}
	res := r.Result()
	res.Stack, res.Polling, res.Threads = t.Name, "", 0
	res.Verified = true // every use was compared, and each has a number
	uses, bytes := t.Used()
	res.Verification = drive.AllCompared(uses, bytes)
	if o.Pin {
		res.Transport, res.Label = t.Name, reports.LabelSoft
	}
	res.DurationNs, res.Operations, res.Detail = d.Took.Nanoseconds(), d.Operations, d
	r.Add(res)
	return ctx.Err()
}

func target(r *engine.Run, pinned bool) (*Target, func() error, error) {
	if pinned {
		t, err := Pin()
		if err != nil {
			return nil, nil, &reports.ExitError{Code: reports.ExitNotRun, Operation: "pin memory through io_uring",
				Err: err, Hint: hint(err)}
		}
		return t, t.Close, nil
	}
	dev, err := r.Open.Device(r.Plan.Transport)
	if err != nil {
		return nil, nil, err
	}
	t, err := Device(dev)
	if err != nil {
		code := reports.ExitFailed
		if errors.Is(err, rdma.ErrNotSupported) {
			code = reports.ExitNotRun
		}
		return nil, nil, &reports.ExitError{Code: code, Operation: "connect " + dev.Name() + " to itself",
			Err: errors.Join(err, dev.Close()), Hint: rdma.Advice(err)}
	}
	return t, func() error { return errors.Join(t.Close(), dev.Close()) }, nil
}

func hint(err error) string {
	if s := rdma.Advice(err); s != "" {
		return s
	}
	return "--transport iwarp, which needs no io_uring"
}
