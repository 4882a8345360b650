package ycsb

import "strings"

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

var opNames = [NumOps]string{"read", "update", "insert", "scan", "rmw"}

// String is the name in results.
func (o Op) String() string {
	if o < NumOps {
		return opNames[o]
	}
	return "op?"
}

// Distribution says which records are asked for.
type Distribution uint8

const (
	// Uniform: all alike.
	Uniform Distribution = iota
	// Zipfian: the record i is asked for in proportion to (i+1)^-Theta.
	Zipfian
	// Scrambled is Zipfian with the popular records spread over the keys. It is what the
	// mixes call zipfian.
	Scrambled
	// Latest is Zipfian backwards from the newest record.
	Latest
	numDistributions
)

var distributionNames = [numDistributions]string{"uniform", "zipfian-ordered", "zipfian", "latest"}

// String is the name in results.
func (d Distribution) String() string {
	if d < numDistributions {
		return distributionNames[d]
	}
	return "distribution?"
}

// Mix is a core workload.
type Mix struct {
	Name    string
	Title   string          // the name of the paper
	Share   [NumOps]float64 // of all operations; the sum is 1
	Request Distribution
}

var mixes = []Mix{
	{"a", "update heavy", [NumOps]float64{Read: 0.5, Update: 0.5}, Scrambled},
	{"b", "read mostly", [NumOps]float64{Read: 0.95, Update: 0.05}, Scrambled},
	{"c", "read only", [NumOps]float64{Read: 1}, Scrambled},
	{"d", "read latest", [NumOps]float64{Read: 0.95, Insert: 0.05}, Latest},
	{"e", "short ranges", [NumOps]float64{Scan: 0.95, Insert: 0.05}, Scrambled},
	{"f", "read-modify-write", [NumOps]float64{Read: 0.5, RMW: 0.5}, Scrambled},
}

// Mixes lists the names a to f.
func Mixes() []string {
	var names []string
	for _, m := range mixes {
		names = append(names, m.Name)
	}
	return names
}

// FindMix returns the mix of a name.
func FindMix(name string) (Mix, bool) {
	for _, m := range mixes {
		if m.Name == strings.ToLower(name) {
			return m, true
		}
	}
	return Mix{}, false
}

// Has tells whether the mix has operations of a kind.
func (m Mix) Has(o Op) bool { return m.Share[o] > 0 }
