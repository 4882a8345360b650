package fused

import (
	"context"
	"fmt"
	"time"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
)

// watchHealth tells of a service's health until ctx ends (grpc doc/health-checking.md,
// gRFC A17). A server without the health service counts as well.
func (sc *subConn) watchHealth(ctx context.Context, service string, tell func(balancer.SubConnState)) {
	tell(balancer.SubConnState{ConnectivityState: connectivity.Connecting})
	for failed := 0; ctx.Err() == nil; failed++ {
		w, err := healthpb.NewHealthClient(sc).Watch(ctx, &healthpb.HealthCheckRequest{Service: service})
		for err == nil {
			var r *healthpb.HealthCheckResponse
			if r, err = w.Recv(); err != nil {
				break
			}
			failed = 0
			if r.Status == healthpb.HealthCheckResponse_SERVING {
				tell(balancer.SubConnState{ConnectivityState: connectivity.Ready})
			} else {
				tell(balancer.SubConnState{ConnectivityState: connectivity.TransientFailure,
					ConnectionError: fmt.Errorf("fused: service %q is %v", service, r.Status)})
			}
		}
		if status.Code(err) == codes.Unimplemented {
			tell(balancer.SubConnState{ConnectivityState: connectivity.Ready})
			return
		}
		if ctx.Err() != nil {
			return
		}
		tell(balancer.SubConnState{ConnectivityState: connectivity.TransientFailure,
			ConnectionError: fmt.Errorf("fused: watch the health of %q: %w", service, err)})
		select {
		case <-time.After(sc.p.b.pause(failed)):
		case <-ctx.Done():
		}
	}
}
