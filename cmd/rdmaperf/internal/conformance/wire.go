package conformance

import (
	"errors"
	"fmt"
	"net"
	"slices"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/cli"
	"github.com/rdmaperf/rdmaperf/grpcrdma/interop"
	"github.com/rdmaperf/rdmaperf/softstack/wiretest/suite"
	"github.com/rdmaperf/rdmaperf/transports/conform"
	litesuite "github.com/rdmaperf/rdmaperf/transports/lite/suite"
)

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
