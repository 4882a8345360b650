package devices

import (
	"fmt"
	"slices"

	"github.com/rdmaperf/rdmaperf/transports/rdma"
	"github.com/rdmaperf/rdmaperf/transports/verbs"
)

// addVerbs fills in what only verbs know; note says of which devices they know nothing.
func (h Host) addVerbs(devs []Device) (note string) {
	if h.Verbs == nil {
		return ""
	}
	infos, err := h.Verbs()
	if err != nil {
		note = "--transport verbs cannot be used: " + err.Error()
		if try := rdma.Advice(err); try != "" {
			note += "; try " + try
		}
		return note
	}
	var closed []string
	for i := range devs {
		d := &devs[i]
		k := slices.IndexFunc(infos, func(v verbs.DeviceInfo) bool { return v.Name == d.Name })
		if k < 0 {
			closed = append(closed, d.Name)
			continue
		}
		d.add(&infos[k])
	}
	if closed != nil {
		note = fmt.Sprintf("libibverbs has no provider for %q: --transport verbs cannot use it", closed)
	}
	return note
}

func (d *Device) add(v *verbs.DeviceInfo) {
	l := &v.Limits
	d.Limits = &Limits{QPs: l.QPs, QPWR: l.QPWR, SGE: l.SGE, CQs: l.CQs, CQE: l.CQE, MRs: l.MRs, MRSize: l.MRSize,
		SRQs: l.SRQs, SRQWR: l.SRQWR, RDAtom: l.RDAtom, InitRDAtom: l.InitRDAtom, Atomics: l.Atomics}
	if d.Firmware == "" {
		d.Firmware = v.Firmware
	}
	for i := range d.Ports {
		for _, p := range v.Ports {
			if p.Number == d.Ports[i].Number {
				d.Ports[i].MTU, d.Ports[i].MaxMsg = p.MTU, p.MaxMsg
			}
		}
	}
}
