package grpcrdma

import (
	"fmt"
	"net"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/resolver"
)

// WithRDMA turns a gRPC client to RDMA: grpc.NewClient(target, grpcrdma.WithRDMA(n), …).
// Everything above the byte stream stays gRPC's own: HTTP/2, TLS, keepalive,
// interceptors. Peers without RDMA are reached by TCP, as [Dialer] says; use
// Dialer.DialOption to choose otherwise. A server turns to RDMA by serving
// Net.Listen's listener.
func WithRDMA(n *Net) grpc.DialOption { return (&Dialer{Net: n}).DialOption() }

// DialOption is the Dialer as an option of grpc.NewClient.
func (d *Dialer) DialOption() grpc.DialOption { return grpc.WithContextDialer(d.DialContext) }

// Resolver makes targets of the form "rdma:///host:port[,host:port…]" work: as an
// option of one client with grpc.WithResolvers, or for the whole process with
// resolver.Register, beside WithRDMA. Such a target is reached by RDMA or not at
// all; a client without WithRDMA fails on it instead of using TCP in silence.
// Names are the device's to resolve.
func Resolver() resolver.Builder { return builder{} }

type builder struct{}

func (builder) Scheme() string { return Scheme }

// Build splits the target; there is nothing to watch.
func (builder) Build(target resolver.Target, cc resolver.ClientConn, opts resolver.BuildOptions) (resolver.Resolver,
	error) {
	if opts.Dialer == nil {
		return nil, fmt.Errorf("target %v: the client dials TCP only; add grpcrdma.WithRDMA or a Dialer's DialOption",
			&target.URL)
	}
	if target.URL.Host != "" {
		return nil, fmt.Errorf("target %v: an authority has no meaning here; write rdma:///host:port", &target.URL)
	}
	var s resolver.State
	for _, at := range strings.Split(target.Endpoint(), ",") {
		host, port, err := net.SplitHostPort(at)
		if err != nil || host == "" || port == "" {
			return nil, fmt.Errorf("target %v: %q is no host:port", &target.URL, at)
		}
		s.Addresses = append(s.Addresses, resolver.Address{Addr: demand + "/" + at, ServerName: host})
	}
	if err := cc.UpdateState(s); err != nil {
		return nil, err
	}
	return static{}, nil
}

// static is a resolver whose answer never changes.
type static struct{}

func (static) ResolveNow(resolver.ResolveNowOptions) {}
func (static) Close()                                {}
