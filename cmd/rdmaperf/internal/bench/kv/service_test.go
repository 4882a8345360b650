package kv

import (
	"bytes"
	"context"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/status"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/bench/ycsb"
	"github.com/rdmaperf/rdmaperf/grpcrdma/fused"
	"github.com/rdmaperf/rdmaperf/internal/leaktest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// served runs f with a client of both kinds of channel.
func served(t *testing.T, s *Service, f func(t *testing.T, c *Client)) {
	t.Run("http2", func(t *testing.T) {
		srv, l := grpc.NewServer(grpc.WaitForHandlers(true)), listen(t)
		s.Register(srv)
		serve(t, func() error { return srv.Serve(l) }, srv.Stop)
		cc, err := grpc.NewClient(l.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
		if err != nil {
			t.Fatal(err)
		}
		defer cc.Close()
		f(t, NewClient(cc))
	})
	t.Run("fused", func(t *testing.T) {
		srv, err := fused.NewServer(fused.Config{})
		if err != nil {
			t.Fatal(err)
		}
		l := listen(t)
		s.Register(srv)
		serve(t, func() error { return srv.Serve(l) }, srv.Stop)
		ch, err := fused.NewChannel(func(ctx context.Context) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "tcp", l.Addr().String())
		}, fused.Config{})
		if err != nil {
			t.Fatal(err)
		}
		defer ch.Close()
		f(t, NewClient(ch))
	})
}

func listen(t *testing.T) net.Listener {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func serve(t *testing.T, run func() error, stop func()) {
	over := make(chan error, 1)
	go func() { over <- run() }()
	t.Cleanup(func() {
		stop()
		if err := <-over; err != nil {
			t.Error(err)
		}
	})
}

func TestCallsReachTheStore(t *testing.T) {
	cfg := workload(t, "e", 500)
	s, next := serviceHere(t, cfg), uint64(cfg.Records)
	served(t, s, func(t *testing.T, c *Client) {
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		call := c.NewCall()
		defer call.Free()
		key := ycsb.AppendKey(nil, 17)
		field := make([]byte, cfg.FieldBytes)
		cfg.Fill(field, ycsb.ID(17), 2, 99)
		r, err := call.Patch(ctx, key, 2*cfg.FieldBytes, field)
		if err != nil || r.Store <= 0 || len(r.Value) > 0 {
			t.Fatalf("patch: %+v, %v", r, err)
		}
		if r, err = call.Get(ctx, key); err != nil || r.Store <= 0 || Damage(cfg, ycsb.ID(17), r.Value) != nil || !bytes.Equal(r.Value[2*cfg.FieldBytes:][:cfg.FieldBytes], field) {
			t.Fatalf("get: %+v, %v", r, err)
		}
		value := make([]byte, cfg.RecordBytes())
		cfg.FillRecord(value, ycsb.ID(next))
		if _, err = call.Put(ctx, ycsb.AppendKey(nil, next), value); err != nil {
			t.Fatal(err)
		}
		next++
		n := 0
		if r, err = call.Scan(ctx, key, 30); err != nil || DamageScan(cfg, 17, 30, r.Value) != nil || Records(r.Value, func(k, v []byte) error { n++; return nil }) != nil || n != 30 {
			t.Errorf("scan: %d records, %v", n, err)
		}
		for what, c := range map[string]struct {
			do   func() (Reply, error)
			code codes.Code
			text string
		}{
			"get nothing":   {func() (Reply, error) { return call.Get(ctx, []byte("nobody")) }, codes.NotFound, "no such record"},
			"patch nothing": {func() (Reply, error) { return call.Patch(ctx, []byte("nobody"), 0, field) }, codes.NotFound, "no such record"},
			"patch beyond":  {func() (Reply, error) { return call.Patch(ctx, key, 1<<31, field) }, codes.Internal, "of a record of 200"},
			"put a part":    {func() (Reply, error) { return call.Put(ctx, key, field) }, codes.Internal, "records have 200"},
		} {
			if _, err := c.do(); status.Code(err) != c.code || !strings.Contains(err.Error(), c.text) {
				t.Errorf("%s: %v", what, err)
			}
		}
	})
	if err := s.Audit(context.Background(), 1000); err != nil || s.Puts() != int64(next)-int64(cfg.Records) || s.Calls() < 4*s.Puts() {
		t.Errorf("%v, %d puts, %d calls", err, s.Puts(), s.Calls())
	}
}

// Clients at once find what they wrote and damage nothing.
func TestCallsAtOnce(t *testing.T) {
	cfg := workload(t, "a", 200)
	s := serviceHere(t, cfg)
	served(t, s, func(t *testing.T, c *Client) {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		var threads sync.WaitGroup
		for w := range 4 {
			threads.Go(func() {
				g, err := ycsb.NewGenerator(cfg, ycsb.NewKeys(cfg.Records), w)
				if err != nil {
					t.Error(err)
					return
				}
				call, field := c.NewCall(), make([]byte, cfg.FieldBytes)
				defer call.Free()
				for i := range uint64(300) {
					o, _ := g.Next()
					key := ycsb.AppendKey(nil, o.Record)
					if o.Op == ycsb.Update {
						cfg.Fill(field, ycsb.ID(o.Record), o.Field, uint64(w)<<48|i+1)
						_, err = call.Patch(ctx, key, o.Field*cfg.FieldBytes, field)
					} else {
						var r Reply
						if r, err = call.Get(ctx, key); err == nil {
							err = Damage(cfg, ycsb.ID(o.Record), r.Value)
						}
					}
					if err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
		threads.Wait()
	})
	if err := s.Audit(context.Background(), 1<<20); err != nil {
		t.Error(err)
	}
}

func FuzzMessages(f *testing.F) {
	b, err := codec{}.Marshal(&request{key: []byte("user1"), value: []byte("v"), offset: 3, count: 9})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b.Materialize())
	f.Add([]byte{})
	f.Add(bytes.Repeat([]byte{0xff}, 20))
	f.Fuzz(func(t *testing.T, b []byte) {
		var c encoding.CodecV2 = codec{}
		var in request
		if err := c.Unmarshal(mem.BufferSlice{mem.SliceBuffer(b)}, &in); err == nil {
			again, err := c.Marshal(&in)
			if err != nil || !bytes.Equal(again.Materialize(), b) {
				t.Errorf("%x becomes %x, %v", b, again.Materialize(), err)
			}
		}
		in.free()
		var out response
		if err := c.Unmarshal(mem.BufferSlice{mem.SliceBuffer(b)}, &out); (err == nil) != (len(b) >= responseHeader) {
			t.Errorf("response of %d bytes: %v", len(b), err)
		}
		out.free()
	})
}

func BenchmarkLoad(b *testing.B) {
	m, _ := ycsb.FindMix("a")
	cfg := ycsb.Config{Mix: m, Records: 100_000, Fields: 10, FieldBytes: 100, MaxScan: 100}
	for b.Loop() {
		s, err := NewService(cfg, Options{Dir: b.TempDir()})
		if err != nil {
			b.Fatal(err)
		}
		began := time.Now()
		if err := s.Audit(context.Background(), 1<<20); err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(time.Since(began))/1e6, "audit-ms")
		if err := s.Close(); err != nil {
			b.Fatal(err)
		}
	}
}
