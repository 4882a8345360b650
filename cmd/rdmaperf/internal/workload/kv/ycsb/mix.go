package ycsb

import (
	"slices"
	"strings"
)

// Op is what is done to a record.
type Op uint8

const (
	Read   Op = iota // all fields of one record
	Update           // one field of a record
	Insert           // a new record
	Scan             // records in the order of their keys
	RMW              // read a record, then update a field of it
	NumOps
)

// String is the name in results.
func (o Op) String() string { return [NumOps]string{"read", "update", "insert", "scan", "rmw"}[o] }

// Mix is a core workload.
type Mix struct {
	Name  string
	Title string          // the name of the paper
	Share [NumOps]float64 // of all operations; the sum is 1
	// Latest: the i-th newest record is asked for in proportion to (i+1)^-Theta; else hashed ranks are.
	Latest bool
}

var mixes = []Mix{
	{"a", "update heavy", [NumOps]float64{Read: 0.5, Update: 0.5}, false},
	{"b", "read mostly", [NumOps]float64{Read: 0.95, Update: 0.05}, false},
	{"c", "read only", [NumOps]float64{Read: 1}, false},
	{"d", "read latest", [NumOps]float64{Read: 0.95, Insert: 0.05}, true},
	{"e", "short ranges", [NumOps]float64{Scan: 0.95, Insert: 0.05}, false},
	{"f", "read-modify-write", [NumOps]float64{Read: 0.5, RMW: 0.5}, false},
}

func Mixes() (names []string) {
	for _, m := range mixes {
		names = append(names, m.Name)
	}
	return names
}

// FindMix returns the mix of a name.
func FindMix(name string) (Mix, bool) {
	i := slices.Index(Mixes(), strings.ToLower(name))
	if i < 0 {
		return Mix{}, false
	}
	return mixes[i], true
}

func (m Mix) Has(o Op) bool { return m.Share[o] > 0 }

// Requests names the distribution of the records that are asked for, in results.
func (m Mix) Requests() string {
	if m.Latest {
		return "latest"
	}
	return "zipfian"
}
