package cli

import (
	"bytes"
	"errors"
	"os"
	"runtime/pprof"

	"github.com/rdmaperf/rdmaperf/reports"
)

// Profile is a CPU profile in progress. It writes its file when it ends: package pprof hides that a disk is full.
type Profile struct {
	file *os.File
	made bytes.Buffer
}

// StartProfile profiles this process into a new file. There is one profile at a time.
func StartProfile(name string) (*Profile, error) {
	f, err := os.Create(name)
	if err != nil {
		return nil, ProfileFailed(err)
	}
	p := &Profile{file: f}
	if err := pprof.StartCPUProfile(&p.made); err != nil {
		return nil, ProfileFailed(errors.Join(err, f.Close()))
	}
	return p, nil
}

// Stop ends the profile; nil has none.
func (p *Profile) Stop() error {
	if p == nil {
		return nil
	}
	pprof.StopCPUProfile()
	_, err := p.file.Write(p.made.Bytes())
	if err = errors.Join(err, p.file.Close()); err != nil {
		return ProfileFailed(err)
	}
	return nil
}

func ProfileFailed(err error) error {
	return &reports.ExitError{Code: reports.ExitFailed, Operation: "profile the CPU", Err: err,
		Hint: "--cpu-profile where files can be written"}
}
