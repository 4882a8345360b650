//go:build !cgo || !linux

package verbs

import (
	"errors"

	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

var errNoCgo = &rdma.AdviceError{
	Err: &kindError{rdma.ErrNoDevice,
		errors.New("not run: this rdmaperf was built without cgo, which kernel verbs need")},
	Try: "a build on Linux with CGO_ENABLED=1 and a C compiler, or --transport iwarp",
}

// Open always fails: this build has no kernel verbs.
func Open(cfg Config) (rdma.Device, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	return nil, errNoCgo
}

// List always fails likewise.
func List() ([]DeviceInfo, error) { return nil, errNoCgo }

// In says how kernel verbs are in this program.
func In() string { return "no kernel verbs (built without cgo)" }
