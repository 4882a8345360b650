package kv

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine/enginetest"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/kv/ycsb"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/workloadtest"
	"github.com/rdmaperf/rdmaperf/transports"
	"github.com/rdmaperf/rdmaperf/transports/callstest"
)

var must = workloadtest.Must

func openHere(t *testing.T, fsync bool) *store {
	t.Helper()
	s, err := openStore(fsync, 0)
	must(t, err)
	t.Cleanup(func() { must(t, s.Close()) })
	return s
}

func TestStoreIsASortedMap(t *testing.T) {
	for _, fsync := range []bool{false, true} {
		s := openHere(t, fsync)
		const n = 300
		key := func(i int) []byte { return fmt.Appendf(nil, "k%04d", i) }
		value := bytes.Repeat([]byte{'-'}, 100)
		err := s.load(n, func(i int) ([]byte, []byte) {
			value[0] = byte(i)
			return key(2 * i), value
		})
		if err != nil {
			t.Fatal(err)
		}
		if got, err := s.count(); got != n || err != nil {
			t.Errorf("%d records, %v", got, err)
		}
		if _, err := s.get(nil, key(1)); err != errNotFound {
			t.Errorf("get what is not there: %v", err)
		}
		must(t, s.put(key(1), value))
		must(t, s.patch(key(10), 98, []byte("ab")))
		want := append(bytes.Repeat([]byte{'-'}, 98), "ab"...)
		want[0] = 5
		if got, err := s.get([]byte("before"), key(10)); string(got) != "before"+string(want) || err != nil {
			t.Errorf("get: %q, %v", got, err)
		}
		for offset, part := range map[int]string{-1: "a", 99: "ab", 101: ""} {
			if err := s.patch(key(10), offset, []byte(part)); err == nil {
				t.Errorf("patch of %d bytes at %d passes", len(part), offset)
			}
		}
		if err := s.patch(key(3), 0, value); err != errNotFound {
			t.Errorf("patch what is not there: %v", err)
		}
		for _, c := range []struct {
			from, count, limit int
			want               string
		}{
			{0, 3, 1 << 20, "k0000 k0001 k0002"}, {7, 2, 1 << 20, "k0008 k0010"}, {597, 5, 1 << 20, "k0598"},
			{599, 5, 1 << 20, ""}, {0, 0, 1 << 20, ""}, {0, 9, 2 * (8 + 5 + 100), "k0000 k0001"},
			{0, 9, 2*(8+5+100) - 1, "k0000"},
		} {
			b, err := s.scan(nil, key(c.from), c.count, c.limit)
			var keys []string
			if e := records(b, func(k, v []byte) error {
				if len(v) != 100 {
					return fmt.Errorf("%s has %d bytes", k, len(v))
				}
				keys = append(keys, string(k))
				return nil
			}); err != nil || e != nil || strings.Join(keys, " ") != c.want {
				t.Errorf("scan %+v: %q, %v, %v", c, keys, err, e)
			}
		}
	}
}

func TestStoreLeavesNoFile(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	s := openHere(t, false)
	must(t, s.put([]byte("k"), make([]byte, 1<<20)))
	if left, err := os.ReadDir(dir); len(left) > 0 || err != nil {
		t.Errorf("%v, %v", left, err)
	}
	t.Setenv("TMPDIR", filepath.Join(dir, "nowhere"))
	if _, err := openStore(false, 0); err == nil || !strings.Contains(err.Error(), "nowhere") {
		t.Errorf("open in no directory: %v", err)
	}
}

func TestAuditFindsDamage(t *testing.T) {
	s, cfg := serviceHere(t, "a", 2000)
	key := func(n uint64) []byte { return ycsb.AppendKey(nil, n) }
	field := make([]byte, cfg.FieldBytes)
	for i := range uint64(100) {
		cfg.Fill(field, ycsb.ID(i), 2, i+1)
		must(t, s.store.patch(key(i), 2*cfg.FieldBytes, field))
	}
	ctx := context.Background()
	for _, most := range []int{1, 100, 2000, 5000} {
		must(t, s.audit(ctx, most))
	}
	over, cancel := context.WithCancel(ctx)
	cancel()
	if err := s.audit(over, 2000); !errors.Is(err, context.Canceled) {
		t.Errorf("audit without time: %v", err)
	}
	value := make([]byte, cfg.RecordBytes())
	cfg.FillRecord(value, ycsb.ID(2000))
	for _, c := range []struct {
		what string
		do   func() error
		want string
	}{
		{"an insert is missing", func() error { s.puts.Add(1); return nil }, "record 2000 of 2001, user"},
		{"an insert", func() error { return s.store.put(key(2000), value) }, ""},
		{"one too many", func() error { s.puts.Add(-1); return nil }, "2001 records, want 2000"},
		{"a flipped byte", func() error {
			s.puts.Add(1)
			old, err := s.store.get(nil, key(7))
			return errors.Join(err, s.store.patch(key(7), 199, []byte{old[199] ^ 1}))
		}, ": byte 199 is 0x"},
		{"a cut record", func() error { return s.store.put(key(5), value[:9]) }, "has 9 bytes, want 200"},
	} {
		must(t, c.do())
		err := s.audit(ctx, 10_000)
		if c.want == "" && err == nil {
			continue
		}
		var found *corrupt
		if !errors.As(err, &found) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.what, err, c.want)
		}
	}
}

func TestScansAreChecked(t *testing.T) {
	s, cfg := serviceHere(t, "e", 100)
	key := ycsb.AppendKey(nil, 17)
	b, err := s.store.scan(nil, key, 3, 1<<20)
	must(t, err)
	must(t, checkScan(cfg, 17, 3, b))
	first := len(b) / 3 // keys may differ in length by a digit or two
	if err := records(b, func(k, v []byte) error {
		first = recordHeader + len(k) + len(v)
		return errors.New("once")
	}); err == nil {
		t.Fatal("no record")
	}
	flipped := bytes.Clone(b)
	flipped[first+100] ^= 1
	for what, c := range map[string]struct {
		b      []byte
		record uint64
		count  int
	}{
		"want user": {b, 18, 3}, "a scan of 2 records has 3": {b, 17, 2}, "a scan of 3 records has 0": {nil, 17, 3},
		"cut off": {b[:len(b)-1], 17, 3}, "byte ": {flipped, 17, 3},
		" behind ":      {append(bytes.Clone(b[:first]), b[:first]...), 17, 3},
		"finds the key": {append(bytes.Clone(b), 1, 0, 0, 0, 0, 0, 0, 0, 'x'), 17, 9},
	} {
		var found *corrupt
		if err := checkScan(cfg, c.record, c.count, c.b); !errors.As(err, &found) ||
			!strings.Contains(err.Error(), what) {
			t.Errorf("%v, want %q", err, what)
		}
	}
}

func FuzzRecords(f *testing.F) {
	s, err := openStore(false, 0)
	must(f, err)
	for i := range 3 {
		must(f, s.put([]byte{byte(i)}, []byte("value")))
	}
	b, err := s.scan(nil, nil, 3, 1<<20)
	must(f, errors.Join(err, s.Close()))
	f.Add(b)
	f.Add(b[:len(b)-1])
	f.Add(bytes.Repeat([]byte{0xff}, 20))
	f.Fuzz(func(t *testing.T, b []byte) {
		n := 0
		if err := records(b, func(k, v []byte) error { n += recordHeader + len(k) + len(v); return nil }); err == nil &&
			n != len(b) || n > len(b) {
			t.Errorf("%d of %d bytes, %v", n, len(b), err)
		}
	})
}

// What is put damaged and put again before anybody reads it is found where all is compared.
func TestWhatIsPutAgainIsCompared(t *testing.T) {
	_, cfg := serviceHere(t, "a", 100)
	field := func(n uint64) []byte {
		b := make([]byte, cfg.FieldBytes)
		cfg.Fill(b, ycsb.ID(n), 1, 7)
		return b
	}
	changed := field(5)
	changed[20] ^= 1
	for what, c := range map[string]struct {
		value []byte
		want  bool
	}{"as sent": {field(5), false}, "changed": {changed, true}, "of another key": {field(6), true},
		"a part": {field(5)[:49], true}} {
		for _, all := range []bool{false, true} {
			s, _ := serviceHere(t, "a", 100)
			s.sh.Verify, s.sh.VerifyAll = all, all
			record := make([]byte, cfg.RecordBytes())
			cfg.FillRecord(record, ycsb.ID(100))
			patch := func(v []byte) request {
				return request{key: ycsb.AppendKey(nil, 5), offset: uint32(cfg.FieldBytes), value: v}
			}
			for i, in := range []request{patch(c.value), patch(field(5)), {key: ycsb.AppendKey(nil, 100), value: record}} {
				_, err := s.do([]uint8{methodPatch, methodPatch, methodPut}[i], &in, nil)
				must(t, err)
			}
			var found *corrupt
			if err := s.audit(t.Context(), 1000); errors.As(err, &found) != (all && c.want) ||
				err != nil && found == nil {
				t.Errorf("%s, all %v: %v", what, all, err)
			}
		}
	}
}

func serviceHere(t testing.TB, mix string, records int) (*service, ycsb.Config) {
	t.Helper()
	sh := &engine.Shape{Seed: 3}
	s, err := newService(sh, &KVLoad{Mix: mix, Records: records, Fields: 4, FieldBytes: 50, MaxScan: 20})
	must(t, err)
	t.Cleanup(func() { must(t, s.Close()) })
	return s, s.cfg
}

// served runs f on the reference, whose messages arrive in pieces, and on gRPC with HTTP/2 and without.
func served(t *testing.T, s *service, f func(t *testing.T, conn transports.CallConn)) {
	of := enginetest.CarriersUnderTest()
	for name, ends := range map[string]enginetest.Ends{"http2": of["unix"], "fused": of["fused iwarp"],
		"mem": func(testing.TB) (transports.Stack, transports.Stack) {
			m := new(callstest.Mem)
			return m, m
		}} {
		t.Run(name, func(t *testing.T) {
			near, far := ends(t)
			srv, err := far.(transports.CallTransport).ListenCalls(t.Context(), "127.0.0.1:0", transports.CallConfig{}, s)
			must(t, err)
			defer srv.Close()
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
			defer cancel()
			conn, err := near.(transports.CallTransport).DialCalls(ctx, srv.Addr(), transports.CallConfig{})
			must(t, err)
			defer conn.Close()
			f(t, conn)
		})
	}
}

func TestCallsReachTheStore(t *testing.T) {
	s, cfg := serviceHere(t, "e", 500)
	next := uint64(cfg.Records)
	served(t, s, func(t *testing.T, conn transports.CallConn) {
		k, err := conn.Caller(t.Context(), transports.CallerConfig{Timeout: 10 * time.Second})
		must(t, err)
		call := &storeClient{Caller: k}
		defer call.Close()
		key, nobody := ycsb.AppendKey(nil, 17), []byte("nobody")
		field := make([]byte, cfg.FieldBytes)
		cfg.Fill(field, ycsb.ID(17), 2, 99)
		r, err := call.do(methodPatch, request{key: key, offset: 2 * uint32(cfg.FieldBytes), value: field})
		if err != nil || r.store <= 0 || len(r.value) > 0 {
			t.Fatalf("patch: %+v, %v", r, err)
		}
		r, err = call.do(methodGet, request{key: key, count: 1})
		if err != nil || r.store <= 0 || checkRecord(cfg, ycsb.ID(17), r.value) != nil ||
			!bytes.Equal(r.value[2*cfg.FieldBytes:][:cfg.FieldBytes], field) {
			t.Fatalf("get: %+v, %v", r, err)
		}
		value := make([]byte, cfg.RecordBytes())
		cfg.FillRecord(value, ycsb.ID(next))
		_, err = call.do(methodPut, request{key: ycsb.AppendKey(nil, next), value: value})
		must(t, err)
		next++
		n := 0
		r, err = call.do(methodScan, request{key: key, count: 30})
		if err != nil || checkScan(cfg, 17, 30, r.value) != nil ||
			records(r.value, func(k, v []byte) error { n++; return nil }) != nil || n != 30 {
			t.Errorf("scan: %d records, %v", n, err)
		}
		for what, c := range map[string]struct {
			method uint8
			in     request
			code   transports.CallCode
			text   string
		}{
			"get nothing":   {methodGet, request{key: nobody, count: 1}, transports.CallNotFound, "no such record"},
			"patch nothing": {methodPatch, request{key: nobody, value: field}, transports.CallNotFound, "no such record"},
			"patch beyond": {methodPatch, request{key: key, offset: 1 << 31, value: field}, transports.CallInternal,
				"of a record of 200"},
			"put a part": {methodPut, request{key: key, value: field}, transports.CallInternal, "records have 200"},
			// What a method ignores would hide a change on the way.
			"get behind an offset": {methodGet, request{key: key, offset: 1, count: 1}, transports.CallInternal, "offset 1"},
			"get many":             {methodGet, request{key: key, count: 1 << 16}, transports.CallInternal, "count 65536"},
			"get with a value":     {methodGet, request{key: key, count: 1, value: field}, transports.CallInternal, "of value"},
			"scan none":            {methodScan, request{key: key}, transports.CallInternal, "count 0"},
			"scan too many": {methodScan, request{key: key, count: ycsb.MaxScanRecords + 1}, transports.CallInternal,
				"count 10001"},
			"patch with a count":   {methodPatch, request{key: key, count: 1, value: field}, transports.CallInternal, "count 1"},
			"put behind an offset": {methodPut, request{key: key, offset: 8, value: value}, transports.CallInternal, "offset 8"},
		} {
			if _, err := call.do(c.method, c.in); transports.AsCallError(err) == nil ||
				transports.AsCallError(err).Code != c.code || !strings.Contains(err.Error(), c.text) {
				t.Errorf("%s: %v", what, err)
			}
		}
	})
	if err := s.audit(context.Background(), 1000); err != nil || s.puts.Load() != int64(next)-int64(cfg.Records) ||
		s.calls.Load() < 4*s.puts.Load() {
		t.Errorf("%v, %d puts, %d calls", err, s.puts.Load(), s.calls.Load())
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
