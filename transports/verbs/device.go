//go:build cgo && linux

package verbs

// #include "shim.h"
import "C"

import (
	"fmt"

	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// Open makes a device of the kernel's. rdma.ErrNoDevice when this build or machine
// has none, rdma.ErrInvalid for a Config that cannot be.
func Open(cfg Config) (rdma.Device, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	var names []string
	if err := eachDevice(func(dev *C.struct_va_device) error {
		names = append(names, C.GoString(&dev.name[0]))
		return nil
	}); err != nil {
		return nil, err
	}
	return nil, &rdma.OpError{Op: opOpen, Object: cfg.Device, Err: fmt.Errorf("%s: no queue pairs in this version: %w", list(names), rdma.ErrNoDevice)}
}
