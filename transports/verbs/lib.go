//go:build cgo && linux

package verbs

// #cgo CFLAGS: -O2 -Wall -Werror=implicit-function-declaration
// #cgo LDFLAGS: -ldl
// #include <stdlib.h>
// #include "shim.h"
import "C"

import (
	"strings"
	"syscall"
	"unsafe"

	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// The structs that cross into C as Go has them. A difference is a negative array length.
var (
	_ [unsafe.Sizeof(rdma.SendWR{}) - C.sizeof_struct_vb_send]byte
	_ [C.sizeof_struct_vb_send - unsafe.Sizeof(rdma.SendWR{})]byte
	_ [unsafe.Sizeof(rdma.RecvWR{}) - C.sizeof_struct_vb_recv]byte
	_ [C.sizeof_struct_vb_recv - unsafe.Sizeof(rdma.RecvWR{})]byte
	_ [unsafe.Sizeof(rdma.WC{}) - C.sizeof_struct_vb_wc]byte
	_ [C.sizeof_struct_vb_wc - unsafe.Sizeof(rdma.WC{})]byte
	_ [unsafe.Sizeof(rdma.PingPongStep{}) - C.sizeof_struct_vb_step]byte
	_ [C.sizeof_struct_vb_step - unsafe.Sizeof(rdma.PingPongStep{})]byte
)

func loadVerbs() error {
	var why [256]C.char
	return loadFailed("libibverbs.so.1", C.vb_load_verbs(&why[0], C.int(len(why))), &why[0])
}

func loadCM() error {
	var why [256]C.char
	return loadFailed("librdmacm.so.1", C.vb_load_cm(&why[0], C.int(len(why))), &why[0])
}

func loadFailed(library string, missing, why *C.char) error {
	if missing == nil {
		return nil
	}
	text := strings.TrimPrefix(C.GoString(why), library+": ")
	if name := C.GoString(missing); name != library {
		text = "it is older than rdma-core 23 and has no " + name
	}
	return libraryMissing(library, text)
}

func errno(rc C.int) error {
	if rc == 0 {
		return nil
	}
	if rc == C.VB_UNSAID {
		return errNoErrno
	}
	return syscall.Errno(rc)
}

// In says how kernel verbs are in this program.
func In() string { return "kernel verbs (libibverbs and librdmacm, when they are used)" }

// List describes the machine's devices; none is rdma.ErrNoDevice.
func List() ([]DeviceInfo, error) {
	var all []DeviceInfo
	err := eachDevice(func(dev *C.struct_va_device) error {
		ctx, err := openContext(dev)
		if err != nil {
			return err
		}
		defer C.vb_close(ctx)
		var attr C.struct_va_device_attr
		if rc := C.vb_query_device(ctx, &attr); rc != 0 {
			return &rdma.OpError{Op: "query", Object: C.GoString(&dev.name[0]), Err: errno(rc)}
		}
		info := DeviceInfo{Name: C.GoString(&dev.name[0]), Transport: transportName(dev),
			Firmware: C.GoString(&attr.fw_ver[0]), Limits: limits(&attr)}
		for p := 1; p <= int(attr.phys_port_cnt); p++ {
			var port C.struct_va_port_attr
			if rc := C.vb_query_port(ctx, C.int(p), &port); rc != 0 {
				continue // a port that does not answer is not there
			}
			info.Ports = append(info.Ports, PortInfo{Number: p, Active: port.state == C.VA_PORT_ACTIVE,
				LinkLayer: pick(port.link_layer == C.VA_LINK_ETHERNET, "Ethernet", "InfiniBand"), // 0 from old drivers
				MTU:       mtuBytes(port.active_mtu), MaxMsg: uint64(port.max_msg_sz)})
		}
		all = append(all, info)
		return nil
	})
	return all, err
}

func limits(a *C.struct_va_device_attr) Limits {
	return Limits{QPs: int(a.max_qp), SRQs: int(a.max_srq), CQs: int(a.max_cq), MRs: int(a.max_mr),
		QPWR: int(a.max_qp_wr), SRQWR: int(a.max_srq_wr),
		SGE: int(a.max_sge), CQE: int(a.max_cqe), RDAtom: int(a.max_qp_rd_atom), InitRDAtom: int(a.max_qp_init_rd_atom),
		MRSize: uint64(a.max_mr_size), Atomics: a.atomic_cap != 0}
}

func transportName(dev *C.struct_va_device) string {
	switch dev.transport_type {
	case C.VA_TRANSPORT_IB:
		return "InfiniBand"
	case C.VA_TRANSPORT_IWARP:
		return "iWARP"
	}
	return "other"
}

func mtuBytes(code C.int) int {
	if code < C.VA_MTU_256 || code > C.VA_MTU_4096 {
		return 0
	}
	return 128 << code
}

func eachDevice(f func(*C.struct_va_device) error) error {
	if err := loadVerbs(); err != nil {
		return err
	}
	var n C.int
	list := C.vb_device_list(&n)
	if list == nil || n == 0 {
		if list != nil {
			C.vb_free_device_list(list)
		}
		return noDevice()
	}
	defer C.vb_free_device_list(list)
	for _, dev := range unsafe.Slice(list, int(n)) {
		if err := f(dev); err != nil {
			return err
		}
	}
	return nil
}

func openContext(dev *C.struct_va_device) (*C.struct_va_context, error) {
	name := C.GoString(&dev.name[0])
	var rc C.int
	ctx := C.vb_open(dev, &rc)
	if ctx == nil {
		return nil, openFailed(name, "/dev/infiniband/"+C.GoString(&dev.dev_name[0]), errno(rc))
	}
	return ctx, nil
}
