package conformance

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/cli"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/stackspec"
	"github.com/rdmaperf/rdmaperf/grpcrdma/interop"
	"github.com/rdmaperf/rdmaperf/softstack/wiretest/suite"
	"github.com/rdmaperf/rdmaperf/transports/conform"
	litesuite "github.com/rdmaperf/rdmaperf/transports/lite/suite"
)

type conformSuite struct {
	layer string // the outermost one of its stacks; "": any other, whose device is checked
	cases func() []conform.Case
	check func(ctx context.Context, spec string, o conform.Options) (conform.Report, error)
}

// The order is that of lists of cases.
var conformSuites = []conformSuite{
	{"", conform.Catalogue, checkDevice},
	{stackspec.LITE, litesuite.Catalogue, checkLite},
	{stackspec.GRPC, interop.Catalogue, checkGRPC},
}

func suiteOf(spec string) *conformSuite {
	layers, err := stackspec.Parse(spec)
	for i := range conformSuites {
		if s := &conformSuites[i]; err == nil && s.layer == layers[0].Name {
			return s
		}
	}
	return &conformSuites[0]
}

func catalogueOf(stacks []string) (all []conform.Case) {
	for i := range conformSuites {
		s := &conformSuites[i]
		if slices.ContainsFunc(stacks, func(spec string) bool { return suiteOf(spec) == s }) {
			all = append(all, s.cases()...)
		}
	}
	return all
}

func checkLite(ctx context.Context, spec string, o conform.Options) (conform.Report, error) {
	layers, err := stackspec.Resolve(spec)
	if err != nil {
		return conform.Report{}, err
	}
	var c stackspec.LITEConfig
	if err = stackspec.LITEParams.Read(layers[0], &c); err == nil && (c.Peer || c.Daemon) {
		err = stackspec.Refused(
			errors.New("the cases of the tier are for LITE inside the process: name it without rpc= and daemon"))
	}
	if err != nil {
		return conform.Report{}, stackspec.OpenError(spec, layers, layers[0], err)
	}
	at, err := stackspec.Survey(stackspec.Format(layers[1:]))
	if err != nil {
		return notHere(spec, err, o, litesuite.Catalogue)
	}
	var s stackspec.Set // all nodes of a device that cannot leave the process share it
	open := func(int) (litesuite.Node, error) {
		dev, provider, err := s.OpenLayers(at.Spec)
		if err != nil {
			return litesuite.Node{}, err
		}
		n := litesuite.Node{Device: dev, Listen: at.Listen}
		if m, ok := provider.(stackspec.Mortal); ok {
			n.Kill = m.Kill
		}
		return n, nil
	}
	rep := litesuite.Run(ctx, spec, open, litesuite.Options{Options: o, Config: c.Node()})
	if rep.Err != nil && !errors.Is(rep.Err, conform.ErrUsage) {
		return rep, rep.Err
	}
	return rep, nil
}

func (f *Flags) wireTarget(operation string) ([]string, error) {
	if f.transports != "" || f.verbs.Named() {
		return nil, cli.Usage(operation, errors.New("--wire names a peer and --transport a stack"), "one of them")
	}
	if host, port, err := net.SplitHostPort(f.wire); err != nil || host == "" || port == "" {
		return nil, cli.Usage(operation, fmt.Errorf("--wire %q", f.wire), "--wire HOST:PORT, as in 192.0.2.7:7174")
	}
	return []string{f.wire}, nil
}

func (f *Flags) catalogueOf(stacks []string) []conform.Case {
	if f.wire != "" {
		return suite.Catalogue()
	}
	return catalogueOf(stacks)
}

// EveryCase is the cases of every suite.
func EveryCase() []conform.Case {
	return slices.Concat(conform.Catalogue(), litesuite.Catalogue(), interop.Catalogue(), suite.Catalogue())
}

// onLoopback tells whether a peer can be nobody else's.
func onLoopback(addr string) bool {
	host, _, err := net.SplitHostPort(addr)
	ip := net.ParseIP(host)
	return err == nil && (host == "localhost" || ip != nil && ip.IsLoopback())
}

type conformFiles []conformFile

type conformFile struct {
	*os.File
	form func(io.Writer, ...conform.Report) error
}

// create opens the files before the first case runs, so that a bad name costs no run.
func (f *Flags) create() (conformFiles, error) {
	var files conformFiles
	for _, want := range []struct {
		name string
		form func(io.Writer, ...conform.Report) error
	}{{f.junit, conform.WriteJUnit}, {f.jsonl, conform.WriteJSONL}} {
		if want.name == "" {
			continue
		}
		file, err := os.Create(want.name)
		if err != nil {
			files.close()
			return nil, err
		}
		files = append(files, conformFile{file, want.form})
	}
	return files, nil
}

func (files conformFiles) write(results []conform.Report) error {
	var errs []error
	for _, f := range files {
		errs = append(errs, f.form(f, results...), f.Close())
	}
	return errors.Join(errs...)
}

func (files conformFiles) close() {
	for _, f := range files {
		f.Close()
	}
}
