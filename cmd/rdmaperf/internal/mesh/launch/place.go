// Package launch finds out from what launchers put into the environment which rank this is, and where rank 0 is.
package launch

import (
	"cmp"
	"errors"
	"fmt"
	"hash/fnv"
	"net"
	"strconv"
)

// DefaultPort is the first of the portSpread ports of rank 0, chosen by the job so that two jobs seldom meet.
const (
	DefaultPort = 18516
	portSpread  = 256
)

// MaxRanks bounds what rank 0 holds of the others. Arbitrary: above the ranks of any job.
const MaxRanks = 1 << 16

// Place is what a rank knows of itself.
type Place struct {
	Launcher   string // whose variables say it
	Rank, Size int
	LocalSize  int    // ranks on this host; 0: not known
	Node       string // the host as the launcher names it; "": not known
	Switch     string // what the host hangs on, outermost first, as Slurm and a file of ranks have it; "": not known
	Job        string // the same for all ranks of a run and for no other run; "": not known

	// Rendezvous is where rank 0 listens, HOST:PORT, in the order to try. Empty with PMI, which carries it.
	Rendezvous []string
	PMI        int // descriptor of the process manager, PMI_FD; 0: none
}

// Flags are what the command line says; the zero value says nothing.
type Flags struct {
	Rank       int // below 0: not given
	Size       int
	Rendezvous string // HOST or HOST:PORT
	Hosts      []Host // of a file of ranks, a line each
	Own        func(host string) bool
}

// Find asks the flags first, then the launchers from the innermost to the outermost, as ranks inherit variables.
func Find(env map[string]string, f Flags) (*Place, error) {
	p, err := fromLauncher(env, &f)
	if err != nil {
		return nil, err
	}
	if f.Rank >= 0 {
		p.Rank = f.Rank
	}
	p.Size = cmp.Or(f.Size, p.Size)
	switch {
	case p.Rank < 0:
		return nil, errors.New("no launcher says which rank this is: start it with srun, mpirun, mpiexec or torchrun, " +
			"or give --rank, --size and --rendezvous")
	case p.Size < 1:
		return nil, fmt.Errorf("%s says rank %d and not of how many: give --size", p.Launcher, p.Rank)
	case p.Size > MaxRanks:
		return nil, fmt.Errorf("%s says %d ranks: want at most %d", p.Launcher, p.Size, MaxRanks)
	case p.Rank >= p.Size:
		return nil, fmt.Errorf("%s says rank %d of %d", p.Launcher, p.Rank, p.Size)
	}
	if f.Rendezvous != "" {
		p.Rendezvous, p.PMI = []string{f.Rendezvous}, 0
	}
	if len(p.Rendezvous) == 0 && p.PMI == 0 && p.Size > 1 {
		return nil, fmt.Errorf("%s does not say where rank 0 is: give --rendezvous HOST:PORT, or "+
			"RDMAPERF_MESH_RENDEZVOUS=HOST:PORT in the environment of all ranks", p.Launcher)
	}
	for i, at := range p.Rendezvous {
		if _, _, err := net.SplitHostPort(at); err != nil {
			p.Rendezvous[i] = net.JoinHostPort(at, strconv.Itoa(p.port()))
		}
	}
	return p, nil
}

func fromLauncher(env map[string]string, f *Flags) (*Place, error) {
	if f.Hosts != nil {
		return fromHosts(f)
	}
	for _, row := range launchers {
		p := &Place{Launcher: row.name, Rank: -1}
		found, err := row.read(vars(env), p)
		switch {
		case err == nil && found:
			return p, nil
		case err != nil && (f.Rank < 0 || f.Size == 0):
			return nil, fmt.Errorf("%s: %w", row.name, err)
		case err != nil:
			return &Place{Launcher: row.name, Rank: -1}, nil
		}
	}
	return &Place{Launcher: "the command line", Rank: -1}, nil
}

func (p *Place) port() int {
	if p.Job == "" {
		return DefaultPort
	}
	h := fnv.New32a()
	h.Write([]byte(p.Job)) // never fails (hash.Hash)
	return DefaultPort + int(h.Sum32()%portSpread)
}
