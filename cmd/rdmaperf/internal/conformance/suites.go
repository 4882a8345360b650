package conformance

import (
	"context"
	"slices"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/stackspec"
	"github.com/rdmaperf/rdmaperf/grpcrdma/interop"
	"github.com/rdmaperf/rdmaperf/transports/conform"
	"github.com/rdmaperf/rdmaperf/transports/lite/suite"
)

type conformSuite struct {
	layer string // the outermost one of its stacks; "": any other, whose device is checked
	cases func() []conform.Case
	check func(ctx context.Context, spec string, o conform.Options) (conform.Report, error)
}

// The order is that of lists of cases.
var conformSuites = []conformSuite{
	{"", conform.Catalogue, checkDevice},
	{stackspec.LITE, suite.Catalogue, checkLite},
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
