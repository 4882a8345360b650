package cli

import (
	"errors"
	"os"
	"runtime/pprof"

	"github.com/rdmaperf/rdmaperf/reports"
)

// StartProfile profiles this process into a new file. There is one profile at a time.
func StartProfile(name string) (*os.File, error) {
	f, err := os.Create(name)
	if err != nil {
		return nil, ProfileFailed(err)
	}
	if err := pprof.StartCPUProfile(f); err != nil {
		return nil, ProfileFailed(errors.Join(err, f.Close()))
	}
	return f, nil
}

func StopProfile(f *os.File) error {
	if f == nil {
		return nil
	}
	pprof.StopCPUProfile()
	if err := f.Close(); err != nil {
		return ProfileFailed(err)
	}
	return nil
}

func ProfileFailed(err error) error {
	return &reports.ExitError{Code: reports.ExitFailed, Operation: "profile the CPU", Err: err,
		Hint: "--cpu-profile where files can be written"}
}
