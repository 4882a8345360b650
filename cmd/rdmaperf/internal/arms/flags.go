package arms

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/values"
	"github.com/rdmaperf/rdmaperf/regcache/offload"
)

// Flags are those that workloads of arms share. The first of them to register makes the
// flags, and all read the same.
type Flags struct {
	set *pflag.FlagSet
}

// Chosen is what the flags say.
type Chosen struct {
	Arms     []string // that were asked for
	ODP      bool     // is among them, which not every device has
	Offloads []string // at least one
	Deferred int      // bytes
}

const defaultDeferred = "64M"

// Register adds the flags unless another workload has.
func (f *Flags) Register(set *pflag.FlagSet) {
	f.set = set
	if set.Lookup("arms") != nil {
		return
	}
	set.StringSlice("arms", Names(),
		"register, allreduce: comma list of none (the device registers each time), cache, prereg (registered when it "+
			"is mapped), prereg+lazy (and unmapped late), odp (on-demand paging, where the device has it)")
	set.StringSlice("offload", nil,
		"register, allreduce: comma list of none, hop, TIME, hop+TIME: a detour of each call of the driver, as of a "+
			"kernel next to Linux (default none,hop; of allreduce none)")
	set.String("deferred", defaultDeferred,
		"register, allreduce: bytes that prereg+lazy keeps when they are unmapped; at least two buffers")
}

// Read checks and returns them. own are the detours when none are given.
func (f *Flags) Read(changed func(flag string) bool, own ...string) (c Chosen, err error) {
	list, err := f.set.GetStringSlice("arms")
	if err != nil {
		return c, err
	}
	for _, a := range values.Unique(list) {
		switch {
		case !slices.Contains(Names(), a):
			return c, values.Wrong("arms", "%q: want one of %s", a, strings.Join(Names(), ", "))
		}
		c.ODP = c.ODP || a == ODP
		c.Arms = append(c.Arms, a)
	}
	if c.Offloads, err = f.set.GetStringSlice("offload"); err != nil {
		return c, err
	}
	if !changed("offload") {
		c.Offloads = own
	}
	if c.Offloads = values.Unique(c.Offloads); len(c.Offloads) == 0 {
		c.Offloads = []string{"none", "hop"}
	}
	for _, o := range c.Offloads {
		if _, err := offload.Parse(o); err != nil {
			return c, values.Wrong("offload", "%w", err)
		}
	}
	text, err := f.set.GetString("deferred")
	if err != nil {
		return c, err
	}
	if c.Deferred, err = values.Bytes(text); err != nil {
		return c, values.Wrong("deferred", "%w", err)
	}
	if c.Deferred < 1 {
		return c, values.Wrong("deferred", "%w", fmt.Errorf("%s: want at least 1 byte", text))
	}
	return c, nil
}
