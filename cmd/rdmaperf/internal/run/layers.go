package run

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/cli"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/stackspec"
)

// addLayers adds the stacks with the parameters of layers that points ask for, which are measured at those points
// alone.
func (p *runPlan) addLayers() error {
	type asked struct{ layer, param string }
	var all []asked
	for _, pt := range p.points {
		if a := (asked{pt.Needs.Layer, pt.Needs.Param}); a.layer != "" && !slices.Contains(all, a) {
			all = append(all, a)
		}
	}
	p.added = map[string]bool{}
	for _, a := range all {
		var stacks []string
		found := false
		for _, spec := range p.stacks {
			stacks = append(stacks, spec)
			if p.added[spec] {
				continue
			}
			layers, err := stackspec.Parse(spec)
			if err != nil {
				return err
			}
			i := slices.IndexFunc(layers, func(l stackspec.Layer) bool { return l.Name == a.layer })
			if i < 0 {
				continue
			}
			found = true
			key, _, _ := strings.Cut(a.param, "=")
			if _, given := layers[i].Param(key); given {
				continue // the user chose
			}
			layers[i] = layers[i].With(a.param)
			if more := stackspec.Format(layers); !slices.Contains(p.stacks, more) {
				p.added[more] = true
				stacks = append(stacks, more)
			}
		}
		if !found {
			return cli.Usage("read --transport",
				fmt.Errorf("none of the stacks has the layer %s, which a point asks for", a.layer),
				"--transport "+a.layer+"+"+stackspec.Embedded())
		}
		p.stacks = stacks
	}
	return nil
}

func (p *runPlan) suits(spec string, pt engine.Point) bool {
	if pt.Needs.Layer == "" {
		return !p.added[spec]
	}
	layers, err := stackspec.Parse(spec)
	return err == nil && slices.ContainsFunc(layers, func(l stackspec.Layer) bool {
		return l.Name == pt.Needs.Layer && slices.Contains(l.Params, pt.Needs.Param)
	})
}
