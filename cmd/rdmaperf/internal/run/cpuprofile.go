package run

import (
	"os"
	"path/filepath"

	"github.com/spf13/pflag"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/cli"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/resultfile"
)

// The files of --cpu-profile, for "go tool pprof", which cover all that a process did.
const (
	clientProfile = "client.pprof"
	serverProfile = "server.pprof"
)

type profileOptions struct {
	dir  string
	file *cli.Profile
}

func (p *profileOptions) register(f *pflag.FlagSet) {
	f.StringVar(&p.dir, "cpu-profile", "",
		"write CPU profiles for go tool pprof into this directory: "+clientProfile+" of this process, and "+
			serverProfile+" of the server where there is no HOST and the stack leaves the process")
}

func (p *profileOptions) start() error {
	if p.dir == "" {
		return nil
	}
	if err := resultfile.MakeDir(p.dir, false); err != nil {
		return cli.ProfileFailed(err)
	}
	var err error
	p.file, err = cli.StartProfile(filepath.Join(p.dir, clientProfile))
	return err
}

// server is the argument of a child, nil without a profile. It makes the file, so that there is one error, not two.
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
		return nil, cli.ProfileFailed(err)
	}
	return []string{"--cpu-profile", name}, nil
}

func (p *profileOptions) stop() error { return p.file.Stop() }
