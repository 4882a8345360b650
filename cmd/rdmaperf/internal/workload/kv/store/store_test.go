package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/kv/ycsb"
)

func openHere(t *testing.T, o Options) *Store {
	t.Helper()
	o.Dir = t.TempDir()
	s, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func TestStoreIsASortedMap(t *testing.T) {
	for _, fsync := range []bool{false, true} {
		s := openHere(t, Options{Fsync: fsync})
		const n = 300
		key := func(i int) []byte { return fmt.Appendf(nil, "k%04d", i) }
		value := bytes.Repeat([]byte{'-'}, 100)
		err := s.Load(n, func(i int) ([]byte, []byte) {
			value[0] = byte(i)
			return key(2 * i), value
		})
		if err != nil {
			t.Fatal(err)
		}
		if got, err := s.Count(); got != n || err != nil {
			t.Errorf("%d records, %v", got, err)
		}
		if _, err := s.Get(nil, key(1)); err != ErrNotFound {
			t.Errorf("get what is not there: %v", err)
		}
		if err := s.Put(key(1), value); err != nil {
			t.Error(err)
		}
		if err := s.Patch(key(10), 98, []byte("ab")); err != nil {
			t.Error(err)
		}
		want := append(bytes.Repeat([]byte{'-'}, 98), "ab"...)
		want[0] = 5
		if got, err := s.Get([]byte("before"), key(10)); string(got) != "before"+string(want) || err != nil {
			t.Errorf("get: %q, %v", got, err)
		}
		for offset, part := range map[int]string{-1: "a", 99: "ab", 101: ""} {
			if err := s.Patch(key(10), offset, []byte(part)); err == nil {
				t.Errorf("patch of %d bytes at %d passes", len(part), offset)
			}
		}
		if err := s.Patch(key(3), 0, value); err != ErrNotFound {
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
			b, err := s.Scan(nil, key(c.from), c.count, c.limit)
			var keys []string
			if e := Records(b, func(k, v []byte) error {
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

// Nothing is left where the file was, even while it is open.
func TestStoreLeavesNoFile(t *testing.T) {
	dir := t.TempDir()
	s, err := Open(Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := s.Put([]byte("k"), make([]byte, 1<<20)); err != nil {
		t.Fatal(err)
	}
	if left, err := os.ReadDir(dir); len(left) > 0 || err != nil {
		t.Errorf("%v, %v", left, err)
	}
	if _, err := Open(Options{Dir: filepath.Join(dir, "nowhere")}); err == nil ||
		!strings.Contains(err.Error(), "nowhere") {
		t.Errorf("open in no directory: %v", err)
	}
}

func workload(t *testing.T, mix string, records int) ycsb.Config {
	t.Helper()
	m, ok := ycsb.FindMix(mix)
	if !ok {
		t.Fatal("no mix " + mix)
	}
	return ycsb.Config{Mix: m, Records: records, Fields: 4, FieldBytes: 50, MaxScan: 20, Seed: 3}
}

func serviceHere(t *testing.T, cfg ycsb.Config) *Service {
	t.Helper()
	s, err := NewService(cfg, Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// An audit finds what is damaged, missing or too much, whoever wrote at once.
func TestAuditFindsDamage(t *testing.T) {
	cfg := workload(t, "a", 2000)
	s := serviceHere(t, cfg)
	key := func(n uint64) []byte { return ycsb.AppendKey(nil, n) }
	var threads sync.WaitGroup
	for w := range uint64(3) {
		threads.Go(func() {
			field := make([]byte, cfg.FieldBytes)
			for i := range uint64(100) {
				cfg.Fill(field, ycsb.ID(i), int(w), w<<48|i+1)
				if err := s.store.Patch(key(i), int(w)*cfg.FieldBytes, field); err != nil {
					t.Error(err)
				}
			}
		})
	}
	threads.Wait()
	ctx := context.Background()
	for _, most := range []int{1, 100, 2000, 5000} {
		if err := s.Audit(ctx, most); err != nil {
			t.Fatal(err)
		}
	}
	over, cancel := context.WithCancel(ctx)
	cancel()
	if err := s.Audit(over, 2000); !errors.Is(err, context.Canceled) {
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
		{"an insert", func() error { return s.store.Put(key(2000), value) }, ""},
		{"one too many", func() error { s.puts.Add(-1); return nil }, "2001 records, want 2000"},
		{"a flipped byte", func() error {
			s.puts.Add(1)
			old, err := s.store.Get(nil, key(7))
			return errors.Join(err, s.store.Patch(key(7), 199, []byte{old[199] ^ 1}))
		}, ": byte 199 is 0x"},
		{"a cut record", func() error { return s.store.Put(key(5), value[:9]) }, "has 9 bytes, want 200"},
	} {
		if err := c.do(); err != nil {
			t.Fatal(err)
		}
		err := s.Audit(ctx, 10_000)
		if c.want == "" && err == nil {
			continue
		}
		var found *Corrupt
		if !errors.As(err, &found) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.what, err, c.want)
		}
	}
}

// A scan is held against what it must begin with, its order, its length and every record.
func TestScansAreChecked(t *testing.T) {
	cfg := workload(t, "e", 100)
	s := serviceHere(t, cfg)
	key := ycsb.AppendKey(nil, 17)
	b, err := s.store.Scan(nil, key, 3, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	if err := DamageScan(cfg, 17, 3, b); err != nil {
		t.Fatal(err)
	}
	first := len(b) / 3 // keys may differ in length by a digit or two
	if err := Records(b, func(k, v []byte) error {
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
		var found *Corrupt
		if err := DamageScan(cfg, c.record, c.count, c.b); !errors.As(err, &found) ||
			!strings.Contains(err.Error(), what) {
			t.Errorf("%v, want %q", err, what)
		}
	}
}

func FuzzRecords(f *testing.F) {
	s, err := Open(Options{Dir: f.TempDir()})
	if err != nil {
		f.Fatal(err)
	}
	for i := range 3 {
		if err := s.Put([]byte{byte(i)}, []byte("value")); err != nil {
			f.Fatal(err)
		}
	}
	b, err := s.Scan(nil, nil, 3, 1<<20)
	if err := errors.Join(err, s.Close()); err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Add(b[:len(b)-1])
	f.Add(bytes.Repeat([]byte{0xff}, 20))
	f.Fuzz(func(t *testing.T, b []byte) {
		n := 0
		if err := Records(b, func(k, v []byte) error { n += recordHeader + len(k) + len(v); return nil }); err == nil &&
			n != len(b) || n > len(b) {
			t.Errorf("%d of %d bytes, %v", n, len(b), err)
		}
	})
}

// What is put damaged and put again before anybody reads it is found where all is compared:
// a field that changed, one of another key, and a part of one.
func TestWhatIsPutAgainIsCompared(t *testing.T) {
	cfg := workload(t, "a", 100)
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
			s := serviceHere(t, cfg)
			if all {
				s.CompareAll()
			}
			key := ycsb.AppendKey(nil, 5)
			for _, v := range [][]byte{c.value, field(5)} {
				if _, err := s.patch(&request{key: key, offset: uint32(cfg.FieldBytes), value: v}, nil); err != nil {
					t.Fatal(err)
				}
			}
			record := make([]byte, cfg.RecordBytes())
			cfg.FillRecord(record, ycsb.ID(100))
			if _, err := s.put(&request{key: ycsb.AppendKey(nil, 100), value: record}, nil); err != nil {
				t.Fatal(err)
			}
			var found *Corrupt
			if err := s.Audit(t.Context(), 1000); errors.As(err, &found) != (all && c.want) ||
				err != nil && found == nil {
				t.Errorf("%s, all %v: %v", what, all, err)
			}
		}
	}
}
