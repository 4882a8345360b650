package mesh

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/catalogue"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/cli"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/devices"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/mesh/launch"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/resultfile"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/stackspec"
	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/reports/page"
	"github.com/rdmaperf/rdmaperf/reports/render"
	"github.com/rdmaperf/rdmaperf/reports/render/text"
)

// Run is one rank, and at rank 0 the whole. Only rank 0 exits with 3: launchers end all ranks when one fails.
func (o *Options) Run(ctx context.Context, stdout, stderr io.Writer) error {
	p, err := o.check()
	if err != nil {
		return err
	}
	if p.place.Rank == 0 {
		return o.rankZero(ctx, p, stdout, stderr)
	}
	key, err := p.key(ctx, "")
	if err != nil {
		return err
	}
	return o.rank(ctx, p, p.place.Rendezvous, key)
}

func (o *Options) rankZero(ctx context.Context, p *plan, stdout, stderr io.Writer) (err error) {
	set := new(stackspec.Set)
	var stacks []Stack
	for _, spec := range p.specs {
		tr, err := set.Open(spec)
		if err != nil {
			return err
		}
		s, err := o.pairPlan(spec, p, tr)
		if err = errors.Join(err, tr.Close()); err != nil {
			return err
		}
		stacks = append(stacks, s)
	}
	dir := o.dir
	if dir == "" && o.json == "" {
		dir = filepath.Join("rdmaperf-results", time.Now().Format("20060102-150405.000"))
	}
	if err := o.tryOutput(dir); err != nil {
		return err
	}
	port := "0"
	if p.place.PMI == 0 {
		_, port, _ = net.SplitHostPort(p.place.Rendezvous[0]) // Find made it
	}
	l, err := net.Listen("tcp", ":"+port)
	if err != nil {
		return &reports.ExitError{Code: reports.ExitFailed, Operation: "listen for ranks", Err: err,
			Hint: "another --rendezvous HOST:PORT on all ranks"}
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	_, port, _ = net.SplitHostPort(l.Addr().String())
	own := make(chan error, 1)
	key, err := p.key(ctx, port)
	if err != nil {
		return errors.Join(err, l.Close())
	}
	go func() { own <- o.rank(ctx, p, []string{net.JoinHostPort("127.0.0.1", port)}, key) }()
	wait, stop := context.WithTimeout(ctx, p.wait)
	members, missing := gather(wait, l, p.place.Size, key)
	stop()
	l.Close()
	if ctx.Err() != nil {
		return engine.Interrupted()
	}
	place(members)
	token := make([]byte, 16)
	rand.Read(token) // never fails (crypto/rand)
	doc := &reports.Document{Started: time.Now().UTC(), Command: os.Args, Environment: reports.Collect()}
	c := newCoordinator(members, token, stacks, time.Duration(4*len(p.measures))*p.window+4*engine.DefaultTimeout)
	c.progress = o.progress(stderr)
	err = c.rounds(ctx, p.rounds(p.place.Size), o.shifts(p.place.Size))
	c.end()
	if err != nil { // of ctx alone
		err = engine.Interrupted()
	}
	if e := <-own; err == nil {
		err = e
	}
	doc.Error = reports.NewRunError(err)
	doc.Results = c.results
	f := &found{size: p.place.Size, gone: c.gone(), differ: differences(members), lacks: lacks(members),
		apart: slices.Sorted(maps.Keys(c.apart)), took: time.Since(doc.Started)}
	for r, why := range missing {
		f.gone[r] = why
	}
	f.details(&doc.Environment)
	if e := o.write(dir, doc); e != nil {
		err = errors.Join(err, e)
	}
	f.text(stdout, doc)
	if dir != "" && !o.quiet {
		fmt.Fprintf(stderr, "\nSaved: open %s in a browser.\n", filepath.Join(dir, resultfile.PageFile))
	}
	return errors.Join(err, o.verdict(f, doc, stderr))
}

func (o *Options) verdict(f *found, doc *reports.Document, stderr io.Writer) error {
	if f.corrupt(doc) {
		return &reports.ExitError{Code: reports.ExitCorruption, Operation: "verify data",
			Err: errors.New("data corruption"), Hint: "the pairs that failed, one by one with rdmaperf run"}
	}
	if n := len(f.gone); n > 0 {
		return engine.PeerError("mesh", fmt.Errorf("%d of %d ranks did not take part to the end", n, f.size), "")
	}
	lines, err := reports.CheckThresholds(doc, o.failIf.thresholds)
	if err != nil {
		return cli.Usage("check --fail-if", err, "")
	}
	for _, line := range lines {
		fmt.Fprintln(stderr, line)
	}
	if f.bad > 0 || len(lines) > 0 {
		return &reports.ExitError{Code: reports.ExitThreshold, Operation: "mesh", Err: errors.New("something is slow")}
	}
	return nil
}

func (o *Options) tryOutput(dir string) error {
	fail := func(flag string, err error) error {
		return &reports.ExitError{Code: reports.ExitFailed, Operation: "open " + flag, Err: err,
			Hint: "a directory that can be written to"}
	}
	if dir == "" {
		if err := resultfile.TryFile(o.json); err != nil {
			return fail("--json", err)
		}
		return nil
	}
	document := filepath.Join(dir, resultfile.DocumentFile)
	if _, err := os.Stat(document); err == nil && !o.force {
		return cli.Usage("read --output", fmt.Errorf("%s has results of another run", dir), "another directory, or --force")
	}
	err := resultfile.MakeDir(dir, o.dir == "")
	if err == nil {
		err = resultfile.TryFile(document)
	}
	if err != nil {
		return fail("--output", err)
	}
	return nil
}

func (o *Options) write(dir string, doc *reports.Document) error {
	if dir == "" {
		return doc.WriteFile(o.json)
	}
	return render.WriteFiles(dir, doc, text.Options{Own: catalogue.Tables()}, page.Options{Own: catalogue.Charts()},
		render.Exports())
}

func (o *Options) progress(stderr io.Writer) func(done, total int) {
	last := time.Now()
	return func(done, total int) {
		if !o.quiet && time.Since(last) > progressEvery {
			last = time.Now()
			fmt.Fprintf(stderr, "mesh: %d of %d pairs\n", done, total)
		}
	}
}

const progressEvery = 5 * time.Second

// key is what ranks of this run have in common: rank 0 of PMI makes one, else it is of the job and the token.
func (p *plan) key(ctx context.Context, port string) (string, error) {
	if p.place.PMI == 0 {
		sum := sha256.Sum256([]byte("rdmaperf mesh\n" + p.place.Job + "\n" + string(p.token)))
		return fmt.Sprintf("%x", sum), nil
	}
	key := ""
	if p.place.Rank == 0 {
		key = rand.Text()
	}
	var at []string
	for _, ip := range ownAddresses() {
		at = append(at, net.JoinHostPort(ip, port))
	}
	// A deadline needs a descriptor that does not block.
	if err := syscall.SetNonblock(p.place.PMI, true); err != nil {
		return "", engine.PeerError("ask the process manager", fmt.Errorf("PMI_FD %d: %w", p.place.PMI, err),
			"--rendezvous HOST:PORT")
	}
	fd := os.NewFile(uintptr(p.place.PMI), "PMI_FD")
	ctx, stop := context.WithTimeout(ctx, p.wait)
	defer stop()
	got, err := launch.Exchange(ctx, fd, p.place.Rank, strings.Join(at, ",")+";"+key)
	if err != nil {
		return "", engine.PeerError("ask the process manager", err, "--rendezvous HOST:PORT")
	}
	addrs, key, _ := strings.Cut(got, ";")
	p.place.Rendezvous = strings.Split(addrs, ",")
	return key, nil
}

func ownAddresses() (ips []string) {
	addrs, err := net.InterfaceAddrs()
	if err == nil {
		for _, a := range addrs {
			if n, ok := a.(*net.IPNet); ok && n.IP.IsGlobalUnicast() {
				ips = append(ips, n.IP.String())
			}
		}
	}
	return append(ips[:min(len(ips), mostAddresses)], "127.0.0.1")
}

// mostAddresses keeps the value below what process managers take (1024 bytes in Hydra).
const mostAddresses = 8

func (o *Options) rank(ctx context.Context, p *plan, addrs []string, key string) error {
	set := new(stackspec.Set)
	open, device := openHere(o, set.Open), openHere(o, set.OpenDevice)
	l, err := net.Listen("tcp", ":0")
	if err != nil {
		return &reports.ExitError{Code: reports.ExitFailed, Operation: "listen", Err: err}
	}
	defer l.Close()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	env := reports.Collect()
	report := devices.Collect(devices.Local(), nil)
	hello := &Hello{Rank: p.place.Rank, Size: p.place.Size, Host: cmp.Or(p.place.Node, env.Hostname), Machine: machine(),
		CPUs: engine.AllowedCPUs(), Switch: p.place.Switch, Facts: facts(&env, report.Devices),
		Expected: expected(p.specs, report.Devices), Families: families(p.specs, report.Devices)}
	for _, l := range o.lacks(p, devices.Local(), &report, &env) {
		hello.Lacks = append(hello.Lacks, l.What)
	}
	wait, stop := context.WithTimeout(ctx, p.wait+afterGather)
	c, w, err := join(wait, addrs, key, func(nc net.Conn) *Hello {
		host, _, _ := net.SplitHostPort(nc.LocalAddr().String())
		hello.Addr = net.JoinHostPort(host, port)
		return hello
	})
	stop()
	if err != nil {
		return fmt.Errorf("rank %d: %w", p.place.Rank, err)
	}
	defer c.Close()
	table := catalogue.Table()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s := &engine.Server{Workloads: table, Open: open, Token: w.Token, Device: device}
	served := make(chan error, 1)
	go func() { served <- s.Serve(ctx, l) }()
	r := &rank{conn: c, welcome: w, table: table, open: open, device: device}
	err = r.run(ctx)
	cancel()
	return errors.Join(err, <-served)
}

func openHere[T any](o *Options, open func(string) (T, error)) func(string) (T, error) {
	return func(spec string) (opened T, err error) {
		if spec, err = o.verbs.Here(spec, true); err != nil {
			return opened, err
		}
		return open(spec)
	}
}

func (o *Options) lacks(p *plan, h devices.Host, r *devices.Report, e *reports.Environment) []devices.Lack {
	if !slices.ContainsFunc(p.specs, func(s string) bool { return strings.Contains(s, stackspec.Verbs) }) {
		return nil
	}
	return h.Lacks(r, e)
}

// afterGather is how much longer ranks wait than rank 0, which welcomes those that came when it ends waiting.
const afterGather = 10 * time.Second
