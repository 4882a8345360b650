package fused

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	pb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"github.com/rdmaperf/rdmaperf/grpcrdma"
	"github.com/rdmaperf/rdmaperf/grpcrdma/internal/rpctest"
)

func whoCalls(ctx context.Context) (string, error) {
	p, _ := peer.FromContext(ctx)
	info, ok := p.AuthInfo.(credentials.TLSInfo)
	if !ok || len(info.State.VerifiedChains) == 0 {
		return "", status.Errorf(codes.PermissionDenied, "no verified certificate, but %+v", p.AuthInfo)
	}
	return fmt.Sprintf("%s by %d chains at %v", info.State.PeerCertificates[0].DNSNames[0],
		len(info.State.VerifiedChains), info.SecurityLevel), nil
}

// authorizer answers nobody whose certificate it does not see, and says whom it saw.
var authorizer = &script{unary: func(ctx context.Context, _ *pb.SimpleRequest) (*pb.SimpleResponse, error) {
	who, err := whoCalls(ctx)
	return &pb.SimpleResponse{Username: who}, err
}, stream: func(s duplex) error {
	if _, err := s.Recv(); err != nil {
		return err
	}
	who, err := whoCalls(s.Context())
	if err != nil {
		return err
	}
	return s.Send(&pb.StreamingOutputCallResponse{Payload: &pb.Payload{Body: []byte(who)}})
}}

const whoIs = "server.test by 1 chains at PrivacyAndIntegrity"

// sameIdentity: a handler sees the client's certificate in every kind of call, also over the next connection.
func sameIdentity(t *testing.T, r *running) {
	for _, when := range []string{"first connection", "after a reconnect"} {
		var from peer.Peer
		ctx := soon(t)
		got, err := r.UnaryCall(ctx, &pb.SimpleRequest{}, grpc.WaitForReady(true), grpc.Peer(&from))
		for status.Code(err) == codes.Unavailable && ctx.Err() == nil { // a call that met the cut itself
			got, err = r.UnaryCall(ctx, &pb.SimpleRequest{}, grpc.WaitForReady(true), grpc.Peer(&from))
		}
		if err != nil || got.Username != whoIs {
			t.Fatalf("%s: unary call of %q, %v, want %q", when, got.GetUsername(), err, whoIs)
		}
		if info, ok := from.AuthInfo.(credentials.TLSInfo); !ok || len(info.State.VerifiedChains) != 1 {
			t.Errorf("%s: the client sees %+v", when, from.AuthInfo)
		}
		s := opened(t, r, grpc.WaitForReady(true))
		must(t, s.Send(&pb.StreamingOutputCallRequest{}))
		m, err := s.Recv()
		if string(m.GetPayload().GetBody()) != whoIs {
			t.Fatalf("%s: stream of %q, %v, want %q", when, m.GetPayload().GetBody(), err, whoIs)
		}
		end(t, s)
		r.cut()
	}
}

func TestClientCertificatesReachHandlers(t *testing.T) {
	cert, pool := certificate(t)
	server := &tls.Config{Certificates: []tls.Certificate{cert}, ClientAuth: tls.RequireAndVerifyClientCert,
		ClientCAs: pool}
	client := &tls.Config{Certificates: []tls.Certificate{cert}, RootCAs: pool, ServerName: rpctest.ServerName}
	p := program{service: authorizer, serverCreds: credentials.NewTLS(server), clientCreds: credentials.NewTLS(client)}
	sideBySide(t, p, sameIdentity)
	t.Run("connections that bring their TLS", func(t *testing.T) {
		p := program{service: authorizer,
			ownTLS:       func(l net.Listener) net.Listener { return tls.NewListener(l, server) },
			clientOwnTLS: func(c net.Conn) net.Conn { return tls.Client(c, client) }}
		sameIdentity(t, p.run(t, overFused))
	})
	t.Run("without a certificate", func(t *testing.T) {
		p := p
		p.clientCreds = credentials.NewTLS(&tls.Config{RootCAs: pool, ServerName: rpctest.ServerName})
		sideBySide(t, p, func(t *testing.T, r *running) {
			if _, err := r.UnaryCall(soon(t), &pb.SimpleRequest{}); status.Code(err) != codes.Unavailable {
				t.Errorf("%v, want Unavailable", err)
			}
		})
	})
}

// A silent peer is gone with the connection timeout, in handshake and hellos, and GracefulStop does not wait for it.
func TestSilentPeersAreGoneWithTheTimeout(t *testing.T) {
	cert, _ := certificate(t)
	for _, c := range []struct {
		name  string
		creds credentials.TransportCredentials
		own   bool
	}{{name: "no credentials"}, {name: "credentials", creds: credentials.NewServerTLSFromCert(&cert)},
		{name: "own TLS", own: true}} {
		t.Run(c.name, func(t *testing.T) {
			l, dial, kill := overIWARP(t, grpcrdma.Config{})
			if c.own {
				l = tls.NewListener(l, &tls.Config{Certificates: []tls.Certificate{cert}})
			}
			const limit = 200 * time.Millisecond
			r := serve(t, "rdma", l, dial, kill, Config{}, Config{Creds: c.creds, ConnectionTimeout: limit})
			conn, err := dial(soon(t))
			must(t, err)
			defer conn.Close()
			conn.SetReadDeadline(time.Now().Add(testTimeout))
			begun := time.Now()
			if _, err := io.Copy(io.Discard, conn); isTimeout(err) {
				t.Fatal(err)
			}
			if took := time.Since(begun); took > 20*limit {
				t.Errorf("gone after %v, want about %v", took, limit)
			}
			if conn, err = dial(soon(t)); err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			r.server.GracefulStop(soon(t))
		})
	}
}
