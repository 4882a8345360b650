package main

import (
	"errors"
	"os"
	"path/filepath"
	"runtime/pprof"

	"github.com/spf13/pflag"

	"github.com/rdmaperf/rdmaperf/reports"
)

// The files of --cpu-profile, for "go tool pprof". They cover all that a process did,
// of which the windows are nearly everything when --duration is some seconds.
const (
	clientProfile = "client.pprof"
	serverProfile = "server.pprof"
)

// profileOptions is where the CPU profile of this process goes.
type profileOptions struct {
	dir  string
	file *os.File
}

func (p *profileOptions) register(f *pflag.FlagSet) {
	f.StringVar(&p.dir, "cpu-profile", "", "write CPU profiles for go tool pprof into this directory: "+clientProfile+" of this process, and "+serverProfile+" of the server where there is no HOST and the stack leaves the process")
}

// start begins the profile of the client and makes the directory.
func (p *profileOptions) start() error {
	if p.dir == "" {
		return nil
	}
	if err := makeDir(p.dir, false); err != nil {
		return profileFailed(err)
	}
	var err error
	p.file, err = startProfile(filepath.Join(p.dir, clientProfile))
	return err
}

// server is the argument of a child, nil without a profile. It makes the file: an error
// of the child would come with a second one, of a server that did not start.
func (p *profileOptions) server() ([]string, error) {
	if p.dir == "" {
		return nil, nil
	}
	name := filepath.Join(p.dir, serverProfile)
	f, err := os.Create(name)
	if err == nil {
		err = f.Close()
	}
	if err != nil {
		return nil, profileFailed(err)
	}
	return []string{"--cpu-profile", name}, nil
}

func (p *profileOptions) stop() error { return stopProfile(p.file) }

// startProfile profiles this process into a new file. There is one profile at a time.
func startProfile(name string) (*os.File, error) {
	f, err := os.Create(name)
	if err != nil {
		return nil, profileFailed(err)
	}
	if err := pprof.StartCPUProfile(f); err != nil {
		return nil, profileFailed(errors.Join(err, f.Close()))
	}
	return f, nil
}

func stopProfile(f *os.File) error {
	if f == nil {
		return nil
	}
	pprof.StopCPUProfile()
	if err := f.Close(); err != nil {
		return profileFailed(err)
	}
	return nil
}

func profileFailed(err error) error {
	return &reports.ExitError{Code: reports.ExitFailed, Operation: "profile the CPU", Err: err, Hint: "--cpu-profile where files can be written"}
}
