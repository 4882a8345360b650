package ycsb

import (
	"bytes"
	"strconv"
	"testing"
)

func TestRecordsProveThemselves(t *testing.T) {
	for _, size := range []int{MinFieldBytes, 17, 23, DefaultFieldBytes} {
		cfg := config(t, "a")
		cfg.Fields, cfg.FieldBytes = 3, size
		b := make([]byte, cfg.RecordBytes())
		cfg.FillRecord(b, 42)
		cfg.Fill(b[size:2*size], 42, 1, 7<<48|5)
		if at, _ := cfg.CheckRecord(b, 42); at >= 0 {
			t.Fatalf("fields of %d bytes: wrong at %d", size, at)
		}
		// Every byte of contents tells where it is wrong and what it must be; a wrong
		// version shows at the first byte behind it.
		for i := range b {
			b[i] ^= 0x40
			at, want := cfg.CheckRecord(b, 42)
			if i%size >= versionBytes && (at != i || want != b[i]^0x40) {
				t.Errorf("fields of %d bytes: byte %d wrong, found %d, want %#x", size, i, at, want)
			}
			if i%size < versionBytes && at < 0 {
				t.Errorf("fields of %d bytes: byte %d of the version goes unnoticed", size, i)
			}
			b[i] ^= 0x40
		}
		if at, _ := cfg.CheckRecord(b, 43); at < 0 {
			t.Error("another record passes")
		}
		if at, _ := cfg.CheckRecord(b[:len(b)-1], 42); at != len(b)-1 {
			t.Errorf("a short record: wrong at %d", at)
		}
		if at, _ := cfg.CheckRecord(append(bytes.Clone(b), 0), 42); at != len(b) {
			t.Errorf("a long record: wrong at %d", at)
		}
		swapped := append(bytes.Clone(b[size:2*size]), b[:size]...)
		if at, _ := cfg.CheckRecord(append(swapped, b[2*size:]...), 42); at < 0 {
			t.Error("fields that changed places pass")
		}
		cfg.Seed++
		if at, _ := cfg.CheckRecord(b, 42); at < 0 {
			t.Error("another seed passes")
		}
	}
}

func TestKeysDiffer(t *testing.T) {
	seen := map[string]bool{}
	for n := range uint64(100_000) {
		k := string(AppendKey(nil, n))
		if seen[k] || len(k) > MaxKey || k[:4] != "user" {
			t.Fatalf("record %d has the key %q", n, k)
		}
		if id, ok := ParseKey([]byte(k)); !ok || id != ID(n) {
			t.Fatalf("key %q has the ID %d, want %d", k, id, ID(n))
		}
		seen[k] = true
	}
}

func BenchmarkCheckRecord(b *testing.B) {
	m, _ := FindMix("a")
	cfg := Config{Mix: m, Records: 1, Fields: DefaultFields, FieldBytes: DefaultFieldBytes, MaxScan: 1}
	rec := make([]byte, cfg.RecordBytes())
	cfg.FillRecord(rec, 1)
	b.SetBytes(int64(len(rec)))
	for b.Loop() {
		if at, _ := cfg.CheckRecord(rec, 1); at >= 0 {
			b.Fatal(at)
		}
	}
}

func BenchmarkNext(b *testing.B) {
	m, _ := FindMix("a")
	cfg := Config{Mix: m, Records: 100_000, Fields: 10, FieldBytes: 100, MaxScan: 100}
	g, err := NewGenerator(cfg, NewKeys(cfg.Records), 0)
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		g.Next()
	}
}

func FuzzParseKey(f *testing.F) {
	for _, k := range []string{"user0", "user18446744073709551615", "user18446744073709551616", "user", "user01",
		"user1x", "resu1"} {
		f.Add([]byte(k))
	}
	f.Fuzz(func(t *testing.T, key []byte) {
		id, ok := ParseKey(key)
		if want := strconv.AppendUint([]byte(keyPrefix), id, 10); ok != bytes.Equal(key, want) &&
			(ok || bytes.Equal(key, want) && id != 0) {
			t.Errorf("%q: %d, %v", key, id, ok)
		}
	})
}
