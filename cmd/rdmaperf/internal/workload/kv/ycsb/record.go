package ycsb

import "encoding/binary"

const versionBytes = 8

// Loaded is the version of every field that was loaded or inserted.
const Loaded = 0

// Fill writes a field's contents: of the record whose key has the ID id. len(field) is the configuration's FieldBytes.
func (c Config) Fill(field []byte, id uint64, index int, version uint64) {
	binary.LittleEndian.PutUint64(field, version)
	rest, x := field[versionBytes:], c.state(id, index, version)
	for ; len(rest) >= 8; rest = rest[8:] {
		x += golden
		binary.LittleEndian.PutUint64(rest, mix(x))
	}
	for i := range rest {
		rest[i] = byte(mix(x+golden) >> (8 * i))
	}
}

// Check compares a field with what its version says: where the first wrong byte is, or -1, and what it must be.
func (c Config) Check(field []byte, id uint64, index int) (at int, want byte) {
	x := c.state(id, index, binary.LittleEndian.Uint64(field))
	for at = versionBytes; at < len(field); at += 8 {
		x += golden
		word, rest := mix(x), field[at:]
		if len(rest) >= 8 && binary.LittleEndian.Uint64(rest) == word {
			continue
		}
		for i, b := range rest[:min(8, len(rest))] {
			if want = byte(word >> (8 * i)); b != want {
				return at + i, want
			}
		}
	}
	return -1, 0
}

// FillRecord writes all fields of a record that is loaded or inserted.
func (c Config) FillRecord(b []byte, id uint64) {
	for i := range c.Fields {
		c.Fill(b[i*c.FieldBytes:][:c.FieldBytes], id, i, Loaded)
	}
}

// CheckRecord is Check for all fields of a record. One of another length is wrong where the shorter ends.
func (c Config) CheckRecord(b []byte, id uint64) (at int, want byte) {
	for i := range c.Fields {
		if len(b) < (i+1)*c.FieldBytes {
			return len(b), 0
		}
		if at, want := c.Check(b[i*c.FieldBytes:][:c.FieldBytes], id, i); at >= 0 {
			return i*c.FieldBytes + at, want
		}
	}
	if len(b) > c.RecordBytes() {
		return c.RecordBytes(), 0
	}
	return -1, 0
}

// golden and mix are those of splitmix64 (Steele, Lea and Flood, OOPSLA 2014, fig. 17).
const golden = 0x9e3779b97f4a7c15

func mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

func (c Config) state(id uint64, index int, version uint64) uint64 {
	return mix(mix(mix(c.Seed+golden)^id) ^ uint64(index)<<48 ^ version)
}
