package main

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/pflag"
)

// verbsFlags are perftest's flags that choose among kernel verbs devices. They
// hold for the verbs layers of --transport that do not say otherwise themselves.
type verbsFlags struct {
	device string
	port   int
	gid    int
	cm     bool
}

func (v *verbsFlags) register(f *pflag.FlagSet) {
	v.registerLocal(f)
	f.BoolVarP(&v.cm, "rdma_cm", "R", false, "connect by rdma_cm, for --transport verbs; iWARP always connects that way")
}

// registerLocal leaves out what both sides must agree on.
func (v *verbsFlags) registerLocal(f *pflag.FlagSet) {
	f.StringVarP(&v.device, "ib-dev", "d", "", "RDMA device, for --transport verbs (default the first with an ACTIVE port)")
	f.IntVarP(&v.port, "ib-port", "i", 0, "port of the device (default the first ACTIVE one)")
	f.IntVarP(&v.gid, "gid-index", "x", -1, "GID index of the port (default by the peer's address, RoCE v2 first); rdma_cm goes by the address alone")
}

// named tells whether a flag asks for a certain device, so that a missing
// --transport means verbs.
func (v *verbsFlags) named() bool { return v.device != "" || v.port != 0 || v.gid >= 0 }

// check finds values that no device has.
func (v *verbsFlags) check() error {
	switch {
	case v.port < 0 || v.port > 255:
		return fmt.Errorf("--ib-port %d: want 1 to 255", v.port)
	case v.gid < -1 || v.gid > 255:
		return fmt.Errorf("--gid-index %d: want 0 to 255", v.gid)
	case strings.ContainsAny(v.device, "()+:, /"):
		return fmt.Errorf("--ib-dev %q: a bad device name", v.device)
	}
	return nil
}

// apply puts the flags into the verbs layers of stacks. A flag that no layer
// takes is a mistake, but for -R, which asks nothing of a stack that has no other way.
func (v *verbsFlags) apply(stacks []string) ([]string, error) {
	if err := v.check(); err != nil {
		return nil, usage("read command line", err, "rdmaperf run --help")
	}
	out := make([]string, len(stacks))
	verbs, device, port, gid := false, false, false, false
	for i, spec := range stacks {
		out[i] = spec
		layers, err := parseStack(spec)
		if err != nil {
			return nil, usage("read --transport", err, "a comma list of "+stackNames())
		}
		l := &layers[len(layers)-1]
		if l.name != verbsName {
			continue
		}
		verbs = true
		if v.device != "" && l.device == "" {
			l.device, device = v.device, true
		}
		if _, own := l.param("port"); v.port != 0 && !own {
			*l, port = l.with("port="+strconv.Itoa(v.port)), true
		}
		_, cm := l.param("cm")
		if v.cm && !cm {
			*l, cm = l.with("cm"), true
		}
		if _, own := l.param("gid"); v.gid >= 0 && !own {
			if gid = true; !cm { // -x beside -R is perftest's habit: there the address decides
				*l = l.with("gid=" + strconv.Itoa(v.gid))
			}
		}
		out[i] = stackSpec(layers)
	}
	for _, f := range []struct {
		given, taken bool
		text         string
	}{
		{v.device != "", device, "-d " + v.device},
		{v.port != 0, port, "-i " + strconv.Itoa(v.port)},
		{v.gid >= 0, gid, "-x " + strconv.Itoa(v.gid)},
	} {
		if !f.given || f.taken {
			continue
		}
		if verbs {
			return nil, usage("read command line", fmt.Errorf("%s: --transport %s says otherwise", f.text, strings.Join(stacks, ",")), "one of the two")
		}
		return nil, usage("read command line", fmt.Errorf("%s is for kernel verbs, and --transport %s has none", f.text, strings.Join(stacks, ",")), "--transport verbs, or without it")
	}
	return out, nil
}

// verbsName is the provider that these flags are for.
const verbsName = "verbs"

// here is a client's stack as this server opens it: its own flags win over the
// device that the client names, which is a wish where client and server are two
// machines.
func (v *verbsFlags) here(spec string, wish bool) (string, error) {
	layers, err := parseStack(spec)
	if err != nil {
		return spec, nil // opening it says so
	}
	l := &layers[len(layers)-1]
	if l.name != verbsName {
		return spec, nil
	}
	_, cm := l.param("cm")
	remote := wish
	if v.device != "" {
		l.device, wish = v.device, false
	}
	if v.port != 0 {
		*l = l.without("port").with("port=" + strconv.Itoa(v.port))
	}
	if v.gid >= 0 && !cm {
		*l = l.without("gid").with("gid=" + strconv.Itoa(v.gid))
	}
	own := *l
	spec, err = chooseDevice(stackSpec(layers), wish)
	if chosen, e := parseStack(spec); err == nil && e == nil && remote && !cm {
		if _, now := chosen[len(chosen)-1].param("cm"); now {
			return "", openFailed(spec, chosen, own, mixed("this server's device "+v.device+" is iWARP"))
		}
	}
	return spec, err
}

// tryHere opens the device that the flags of a server name, and closes it: a mistake
// shows at once, and not with the first client. Without such a flag nothing is opened.
func (v *verbsFlags) tryHere() error {
	if !v.named() {
		return nil
	}
	spec, err := v.here(verbsName, false)
	if err != nil {
		return err
	}
	tr, err := new(stackSet).open(spec)
	if err != nil {
		return err
	}
	return tr.Close()
}
