package fused

import (
	"context"
	"strings"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
)

// methodConfig waits for the resolver's first word and gives what the service config says of a method; nil for nothing.
func (b *balanced) methodConfig(ctx context.Context, method string) (*methodConfig, *throttle, error) {
	b.wake()
	select {
	case <-b.resolved:
	default:
		select {
		case <-b.resolved:
		case <-b.ctx.Done():
			return nil, nil, errClosed
		case <-ctx.Done():
			return nil, nil, status.FromContextError(ctx.Err()).Err()
		}
	}
	sc := b.config.Load()
	if sc == nil {
		return nil, nil, nil
	}
	return sc.method(method), sc.throttle, nil
}

// pick gives a call the connection that the policy chooses. waited tells that there was no choice at first.
func (b *balanced) pick(cs *clientStream) (waited bool, err error) {
	var last error
	for {
		p := b.pickers.Load()
		if p.Picker != nil {
			r, err := p.Pick(balancer.PickInfo{FullMethodName: cs.method, Ctx: cs.ctx})
			switch st, ok := status.FromError(err); {
			case err == nil:
				if sc, ok := r.SubConn.(*subConn); ok {
					if s := sc.ready(); s != nil {
						cs.s, cs.chosen = s, r
						return waited, nil
					}
				}
				if r.Done != nil {
					r.Done(balancer.DoneInfo{})
				}
			case err == balancer.ErrNoSubConnAvailable:
			case ok: // an order of the policy
				cs.dropped = true
				return waited, onlyOwnCodes(st, "picker")
			case cs.info.failFast:
				return waited, status.Error(codes.Unavailable, err.Error())
			default:
				last = err
			}
		}
		waited = true
		select {
		case <-p.changed:
		case <-cs.ctx.Done():
			return waited, waitEnded(cs.ctx, last)
		}
	}
}

// onlyOwnCodes turns codes that only a server may answer into Internal (gRFC A54).
func onlyOwnCodes(st *status.Status, whose string) error {
	switch st.Code() {
	case codes.InvalidArgument, codes.NotFound, codes.AlreadyExists, codes.FailedPrecondition, codes.Aborted,
		codes.OutOfRange, codes.DataLoss:
		return status.Errorf(codes.Internal, "fused: received %s error with illegal status: %v", whose, st.Err())
	}
	return st.Err()
}

// loadKey is the trailer of a load report (gRFC A51).
const loadKey = "endpoint-load-metrics-bin"

// tellPolicy reports the outcome of a call to the policy.
func (cs *clientStream) tellPolicy(err error) {
	done := cs.chosen.Done
	if done == nil {
		return
	}
	cs.chosen.Done = nil
	d := balancer.DoneInfo{Err: err}
	if st := cs.st; st != nil {
		st.mu.Lock()
		d.BytesSent, d.BytesReceived, d.Trailer = st.opened, st.hasHeader || st.ended, st.trailer
		st.mu.Unlock()
	}
	if v := d.Trailer[loadKey]; len(v) > 0 {
		d.ServerLoad = loadReport(strings.Join(v[len(v)-1:], ""))
	}
	done(d)
}

// loadReport is a message that only programs with load reports have linked.
func loadReport(b string) any {
	t, err := protoregistry.GlobalTypes.FindMessageByName(protoreflect.FullName("xds.data.orca.v3.OrcaLoadReport"))
	if err != nil {
		return nil
	}
	m := t.New().Interface()
	if proto.Unmarshal([]byte(b), m) != nil {
		return nil
	}
	return m
}
