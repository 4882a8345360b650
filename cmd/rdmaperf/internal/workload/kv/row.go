package kv

import (
	"fmt"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/drive"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	kvkind "github.com/rdmaperf/rdmaperf/reports/kinds/kv"
)

// work is the row of the key-value workload.
func work() *engine.Workload {
	w := drive.CallRow(Name, kvkind.Kind, &kvWork)
	w.Point, w.Has, w.Stored = validateKV, engine.Members{Options: true}, kvStored
	w.Describe = func(p engine.Point) string {
		l := loadOf(p)
		return fmt.Sprintf("%s YCSB %s, %d records", p.Workload, l.Mix, l.Records)
	}
	return w
}
