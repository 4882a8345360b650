package suite

import (
	"slices"

	"github.com/rdmaperf/rdmaperf/transports/conform"
	"github.com/rdmaperf/rdmaperf/transports/lite"
)

type row struct {
	conform.Case
	run func(c *cluster)
}

func must(id, clause, requirement string, run func(c *cluster)) row {
	return row{conform.Case{ID: id, Clause: clause, Requirement: requirement, Level: conform.Must}, run}
}

// table is all cases, in the order in which they run.
var table = slices.Concat(memoryCases, handleCases, callCases, lockCases, nodeCases)

func region(c *cluster, cl Client, name string, size uint64, open lite.Perm, at ...int) lite.Handle {
	h, err := cl.Malloc(lite.RegionConfig{Name: name, Size: size, Nodes: at, Open: open, Password: "sesame"})
	c.ok("malloc of "+name, err)
	return h
}

const readWrite = lite.PermRead | lite.PermWrite

// mapped maps the region r.
func mapped(c *cluster, cl Client, want lite.Perm) lite.Handle {
	h, err := cl.Map("r", want, "sesame")
	c.ok("map", err)
	return h
}

func pattern(n int, seed byte) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i*7+i>>8) + seed
	}
	return b
}

func read(c *cluster, cl Client, h lite.Handle, off uint64, n int) []byte {
	b := make([]byte, n)
	c.ok("read", cl.Read(h, off, b))
	return b
}
