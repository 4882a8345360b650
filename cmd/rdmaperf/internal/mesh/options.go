package mesh

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/access"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/catalogue"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/cli"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/mesh/launch"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/mesh/results"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/mesh/verdict"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/stackspec"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/values"
	"github.com/rdmaperf/rdmaperf/reports"
)

// Options are the flags of mesh, as given.
type Options struct {
	transports string
	verbs      stackspec.VerbsFlags
	place      launch.Flags
	ranks      string
	wait       string
	token      access.TokenFlags
	quick      bool
	nearest    int
	sample     int
	pairs      string
	measures   string
	seed       uint64
	duration   string
	failIf     failIf
	json, dir  string
	force      bool
	quiet      bool
}

// Register adds the flags.
func (o *Options) Register(f *pflag.FlagSet) {
	f.SortFlags = false
	values.ListVar(f, &o.transports, "transport", "", "comma list of stacks, each measured by itself, also of several "+
		"devices: verbs:mlx5_0,verbs:mlx5_1 (default verbs where an RDMA device has an ACTIVE port, else "+
		stackspec.Embedded()+")")
	f.BoolVar(&o.quick, "quick", false, "upper half of the ranks against the lower half, in one round")
	cli.Ranged(f, &o.nearest, "nearest", 0, 1, launch.MaxRanks, "only pairs whose ranks are at most so many apart")
	cli.Ranged(f, &o.sample, "sample", 0, 1, launch.MaxRanks,
		"only so many rounds, in each of which a rank meets one other by chance")
	f.StringVar(&o.pairs, "pairs", "", "only the pairs of this file, two ranks a line")
	values.ListVar(f, &o.measures, "measure", results.Latency+","+results.Bandwidth, "comma list of "+
		strings.Join(results.Measures(), ", ")+": both is both directions at once; many-to-one has up to 15 ranks send to "+
		"one; shift has each rank send to the k-th behind it; allreduce has all ranks, at most 32")
	f.Uint64Var(&o.seed, "seed", 1, "of --sample and of the data patterns")
	f.StringVarP(&o.duration, "duration", "D", "100ms", "of the latency and of the bandwidth of a pair, each")
	f.Var(&o.failIf, "fail-if", "what makes a pair bad, of what good pairs have: 'latency>200%' and 'bandwidth<50%' "+
		"(the defaults for software stacks; 'bandwidth<80%' for devices), or an absolute limit such as 'p50>10us', "+
		"'bw<1GB/s', 'interval.bw<1GB/s' (the worst tenth of a window) or 'share<90%' (of what link, MTU and PCIe "+
		"carry); repeatable; then the exit code is 3")
	f.StringVarP(&o.dir, "output", "o", "", "write into this directory (default rdmaperf-results/TIME)")
	f.StringVar(&o.json, "json", "", "write the result document to this file, and no directory")
	f.BoolVar(&o.force, "force", false, "let --output write into a directory with results of another run")
	cli.Ranged(f, &o.place.Rank, "rank", -1, 0, launch.MaxRanks-1,
		"number of this rank, from 0 (default what the launcher says)")
	cli.Ranged(f, &o.place.Size, "size", 0, 1, launch.MaxRanks,
		"how many ranks there are (default what the launcher says)")
	f.StringVar(&o.place.Rendezvous, "rendezvous", "", "HOST or HOST:PORT where rank 0 listens (default what the "+
		"launcher says)")
	f.StringVar(&o.ranks, "ranks", "", "file with the host of each rank, one a line, and behind it the switch that it "+
		"hangs on; for ranks that are started by hand, over ssh")
	f.StringVar(&o.wait, "rendezvous-timeout", "1m", "how long ranks wait for each other")
	o.token.Register(f)
	o.verbs.Register(f)
	f.BoolVar(&o.quiet, "quiet", false, "nothing on stderr but errors")
}

// failIf are limits. Percents are of what good pairs have.
type failIf struct {
	percent    [2]float64 // of latency and bandwidth; 0: the default
	thresholds []reports.Threshold
	text       []string
}

var percents = regexp.MustCompile(`^(latency>|bandwidth<)([0-9.]+)%$`)

var shares = regexp.MustCompile(`^(share<=?)([0-9.]+)%$`)

// Set, Type and String implement pflag.Value.
func (f *failIf) Set(s string) error {
	s = strings.ReplaceAll(s, " ", "")
	if m := percents.FindStringSubmatch(s); m != nil {
		v, err := strconv.ParseFloat(m[2], 64)
		at := slices.Index([]string{"latency>", "bandwidth<"}, m[1])
		if err != nil || v <= 0 || at == 0 && v <= 100 || at == 1 && v >= 100 {
			return errors.New("want a latency above and a bandwidth below 100%, such as latency>200%")
		}
		f.percent[at] = v / 100
	} else {
		limit := s
		if m := shares.FindStringSubmatch(s); m != nil {
			v, err := strconv.ParseFloat(m[2], 64)
			if err != nil {
				return fmt.Errorf("%q is no number", m[2])
			}
			limit = fmt.Sprintf("%s%g", m[1], v/100)
		}
		t, err := reports.ParseThreshold(limit, catalogue.Results())
		if err == nil && t.Relative() {
			err = fmt.Errorf("threshold %q: %w", s, reports.ErrRelative)
		}
		if err != nil {
			return err
		}
		f.thresholds = append(f.thresholds, t)
	}
	f.text = append(f.text, s)
	return nil
}

func (f *failIf) Type() string { return "condition" }

func (f *failIf) String() string { return strings.Join(f.text, ",") }

type plan struct {
	place  *launch.Place
	token  []byte
	specs  []string
	window time.Duration
	wait   time.Duration
	rounds func(n int) [][]verdict.Link

	measures []string
}

func (o *Options) check() (*plan, error) {
	usage := func(flag string, err error) error { return cli.Usage("read "+flag, err, "rdmaperf mesh --help") }
	p := &plan{rounds: verdict.All}
	var err error
	if p.window, err = values.Duration(o.duration); err != nil {
		return nil, usage("--duration", err)
	}
	if p.wait, err = values.Duration(o.wait); err != nil {
		return nil, usage("--rendezvous-timeout", err)
	}
	chosen := 0
	for _, c := range []struct {
		is     bool
		rounds func(n int) [][]verdict.Link
	}{{o.quick, verdict.Halves}, {o.nearest > 0, func(n int) [][]verdict.Link { return verdict.Nearest(n, o.nearest) }},
		{o.sample > 0, func(n int) [][]verdict.Link { return verdict.Sample(n, o.sample, o.seed) }}} {
		if c.is {
			p.rounds = c.rounds
			chosen++
		}
	}
	if o.pairs != "" {
		chosen++
	}
	if chosen > 1 {
		return nil, usage("command line", errors.New("--quick, --nearest, --sample and --pairs exclude each other"))
	}
	if p.measures, err = readMeasures(o.measures); err != nil {
		return nil, usage("--measure", err)
	}
	if o.json != "" && o.dir != "" {
		return nil, usage("command line", errors.New("--json and --output exclude each other"))
	}
	if p.token, err = o.token.Read(); err != nil {
		return nil, err
	}
	if o.ranks != "" {
		f, err := os.Open(o.ranks)
		if err != nil {
			return nil, usage("--ranks", err)
		}
		o.place.Hosts, err = launch.ReadHosts(f)
		if err = errors.Join(err, f.Close()); err != nil {
			return nil, usage("--ranks "+o.ranks, err)
		}
		o.place.Own = launch.IsThisHost
	}
	env := map[string]string{}
	for _, pair := range os.Environ() {
		name, value, _ := strings.Cut(pair, "=")
		env[name] = value
	}
	if p.place, err = launch.Find(env, o.place); err != nil {
		return nil, cli.Usage("find this rank", err, "rdmaperf mesh --help")
	}
	if p.place.Size < 2 {
		return nil, cli.Usage("find this rank", fmt.Errorf("%s started one rank: there is no pair", p.place.Launcher),
			"mpirun -n 2 rdmaperf mesh")
	}
	if o.pairs != "" {
		links, err := readPairs(o.pairs, p.place.Size)
		if err != nil {
			return nil, usage("--pairs", err)
		}
		p.rounds = func(int) [][]verdict.Link { return verdict.Disjoint(links) }
	}
	list := o.transports
	if list == "" {
		list = stackspec.Best()
		if o.verbs.Named() {
			list = stackspec.Verbs
		}
	}
	for _, s := range stackspec.Split(list, ',') {
		p.specs = append(p.specs, strings.TrimSpace(s))
	}
	p.specs, err = o.verbs.Apply(p.specs)
	return p, err
}

func (o *Options) shifts(n int) []int {
	switch {
	case o.quick:
		return []int{n / 2}
	case o.nearest > 0 || o.sample > 0: // not both
		n = min(o.nearest+o.sample+1, n)
	}
	var all []int
	for k := 1; k < n; k++ {
		all = append(all, k)
	}
	return all
}
