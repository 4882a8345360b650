package store

import (
	"bytes"
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/kv/ycsb"
	"github.com/rdmaperf/rdmaperf/grpcrdma/carrier"
	"github.com/rdmaperf/rdmaperf/internal/leaktest"
	"github.com/rdmaperf/rdmaperf/softstack/iwarp"
	"github.com/rdmaperf/rdmaperf/transports"
	"github.com/rdmaperf/rdmaperf/transports/callstest"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// served runs f with connections of the reference, whose messages arrive in pieces, and
// of gRPC, with HTTP/2 and without.
func served(t *testing.T, s *Service, f func(t *testing.T, conn transports.CallConn)) {
	for name, open := range map[string]func(t *testing.T) transports.CallTransport{
		"mem": func(*testing.T) transports.CallTransport { return new(callstest.Mem) },
		"http2": func(t *testing.T) transports.CallTransport {
			return carried(t, carrier.Config{Form: carrier.Unix}, nil)
		},
		"fused": func(t *testing.T) transports.CallTransport {
			dev, err := iwarp.Open(iwarp.Config{})
			if err != nil {
				t.Fatal(err)
			}
			return carried(t, carrier.Config{Form: carrier.Fused}, dev)
		},
	} {
		t.Run(name, func(t *testing.T) {
			tr := open(t)
			t.Cleanup(func() { tr.Close() })
			srv, err := tr.ListenCalls(t.Context(), "127.0.0.1:0", transports.CallConfig{}, s)
			if err != nil {
				t.Fatal(err)
			}
			defer srv.Close()
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
			defer cancel()
			conn, err := tr.DialCalls(ctx, srv.Addr(), transports.CallConfig{})
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			f(t, conn)
		})
	}
}

func carried(t *testing.T, cfg carrier.Config, dev rdma.Device) transports.CallTransport {
	c, err := carrier.New(cfg, dev)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func client(t *testing.T, conn transports.CallConn) *Client {
	k, err := conn.Caller(t.Context(), transports.CallerConfig{Timeout: 10 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	return NewClient(k)
}

func TestCallsReachTheStore(t *testing.T) {
	cfg := workload(t, "e", 500)
	s, next := serviceHere(t, cfg), uint64(cfg.Records)
	served(t, s, func(t *testing.T, conn transports.CallConn) {
		call := client(t, conn)
		defer call.Close()
		key := ycsb.AppendKey(nil, 17)
		field := make([]byte, cfg.FieldBytes)
		cfg.Fill(field, ycsb.ID(17), 2, 99)
		r, err := call.Patch(key, 2*cfg.FieldBytes, field)
		if err != nil || r.Store <= 0 || len(r.Value) > 0 {
			t.Fatalf("patch: %+v, %v", r, err)
		}
		if r, err = call.Get(key); err != nil || r.Store <= 0 || Damage(cfg, ycsb.ID(17), r.Value) != nil ||
			!bytes.Equal(r.Value[2*cfg.FieldBytes:][:cfg.FieldBytes], field) {
			t.Fatalf("get: %+v, %v", r, err)
		}
		value := make([]byte, cfg.RecordBytes())
		cfg.FillRecord(value, ycsb.ID(next))
		if _, err = call.Put(ycsb.AppendKey(nil, next), value); err != nil {
			t.Fatal(err)
		}
		next++
		n := 0
		if r, err = call.Scan(key, 30); err != nil || DamageScan(cfg, 17, 30, r.Value) != nil ||
			Records(r.Value, func(k, v []byte) error { n++; return nil }) != nil || n != 30 {
			t.Errorf("scan: %d records, %v", n, err)
		}
		for what, c := range map[string]struct {
			do   func() (Reply, error)
			code transports.CallCode
			text string
		}{
			"get nothing": {func() (Reply, error) { return call.Get([]byte("nobody")) }, transports.CallNotFound,
				"no such record"},
			"patch nothing": {func() (Reply, error) { return call.Patch([]byte("nobody"), 0, field) },
				transports.CallNotFound, "no such record"},
			"patch beyond": {func() (Reply, error) { return call.Patch(key, 1<<31, field) }, transports.CallInternal,
				"of a record of 200"},
			"put a part": {func() (Reply, error) { return call.Put(key, field) }, transports.CallInternal,
				"records have 200"},
		} {
			if _, err := c.do(); transports.AsCallError(err) == nil || transports.AsCallError(err).Code != c.code ||
				!strings.Contains(err.Error(), c.text) {
				t.Errorf("%s: %v", what, err)
			}
		}
	})
	if err := s.Audit(context.Background(), 1000); err != nil || s.Puts() != int64(next)-int64(cfg.Records) ||
		s.Calls() < 4*s.Puts() {
		t.Errorf("%v, %d puts, %d calls", err, s.Puts(), s.Calls())
	}
}

// Clients at once find what they wrote and damage nothing.
func TestCallsAtOnce(t *testing.T) {
	cfg := workload(t, "a", 200)
	s := serviceHere(t, cfg)
	served(t, s, func(t *testing.T, conn transports.CallConn) {
		var threads sync.WaitGroup
		for w := range 4 {
			threads.Go(func() {
				g, err := ycsb.NewGenerator(cfg, ycsb.NewKeys(cfg.Records), w)
				if err != nil {
					t.Error(err)
					return
				}
				call, field := client(t, conn), make([]byte, cfg.FieldBytes)
				defer call.Close()
				for i := range uint64(300) {
					o, _ := g.Next()
					key := ycsb.AppendKey(nil, o.Record)
					if o.Op == ycsb.Update {
						cfg.Fill(field, ycsb.ID(o.Record), o.Field, uint64(w)<<48|i+1)
						_, err = call.Patch(key, o.Field*cfg.FieldBytes, field)
					} else {
						var r Reply
						if r, err = call.Get(key); err == nil {
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

func FuzzRequests(f *testing.F) {
	f.Add((&request{key: []byte("user1"), value: []byte("v"), offset: 3, count: 9}).append(nil))
	f.Add([]byte{})
	f.Add(bytes.Repeat([]byte{0xff}, 20))
	f.Fuzz(func(t *testing.T, b []byte) {
		var in request
		if err := in.decode(b); err == nil && !bytes.Equal(in.append(nil), b) {
			t.Errorf("%x becomes %x", b, in.append(nil))
		}
	})
}

// Buffers are given out again, never shorter than was asked for.
func TestBuffersHaveRoom(t *testing.T) {
	for n := range 70_000 {
		b := newBuffer(n)
		if len(b.b) != 0 || cap(b.b) < n {
			t.Fatalf("%d bytes: length %d, capacity %d", n, len(b.b), cap(b.b))
		}
		b.b = append(b.b, make([]byte, n+n%3*1000)...) // some outgrow it
		b.Release()
	}
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
