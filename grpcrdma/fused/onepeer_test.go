package fused

import (
	"maps"
	"testing"

	"google.golang.org/grpc/codes"
	pb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/status"
)

// A connection whose frame makes the server's reader panic ends alone: another one is served behind it.
func TestAPanicEndsOneConnectionAlone(t *testing.T) {
	r := newRPC(t, arms[0], Config{}, Config{})
	_, err := r.Client.EmptyCall(soon(t), &pb.Empty{})
	must(t, err)
	bad, err := NewChannel(r.dial, Config{})
	must(t, err)
	defer bad.Close()
	sessions := func() map[*serverSession]struct{} {
		r.server.mu.Lock()
		defer r.server.mu.Unlock()
		return maps.Clone(r.server.sessions)
	}
	good := sessions()
	client := pb.NewTestServiceClient(bad)
	_, err = client.EmptyCall(soon(t), &pb.Empty{})
	must(t, err)
	for ss := range sessions() {
		if _, is := good[ss]; !is {
			ss.callsMu.Lock()
			ss.calls = nil
			ss.callsMu.Unlock()
		}
	}
	if _, err := client.EmptyCall(soon(t), &pb.Empty{}); status.Code(err) != codes.Unavailable {
		t.Errorf("%v, want the end of the connection", err)
	}
	if _, err := r.Client.EmptyCall(soon(t), &pb.Empty{}); err != nil {
		t.Error(err)
	}
}
