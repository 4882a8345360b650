package stackspec

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/cli"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
	"github.com/rdmaperf/rdmaperf/transports/verbs"
)

var verbsParams = params[verbs.Config]{
	{paramDoc{"cm", switchOf, "", "connect by rdma_cm"}, func(c *verbs.Config, _ value) { c.CM = true }},
	{paramDoc{"port", countOf(1, 255), "the first ACTIVE one", "port of the device"},
		func(c *verbs.Config, v value) { c.Port = v.n }},
	{paramDoc{"gid", countOf(0, 255), "by the peer's address", "GID index of the port"},
		func(c *verbs.Config, v value) { c.GIDIndex = v.n }},
	{paramDoc{"mtu", mtuOf, "the port's", "path MTU"}, func(c *verbs.Config, v value) { c.MTU = v.n }},
	{paramDoc{"timeout", countOf(1, 31), "14", "local ACK timeout, 4.096 us * 2^N"},
		func(c *verbs.Config, v value) { c.Timeout = v.n }},
	{paramDoc{"sl", countOf(0, 15), "0", "service level; of Ethernet the lower three bits are the priority of VLANs"},
		func(c *verbs.Config, v value) { c.SL = v.n }},
	{paramDoc{"tos", tosOf, "0", "traffic class of packets, or by rdma_cm the type of service"},
		func(c *verbs.Config, v value) { c.TOS = v.n }},
	{paramDoc{"retry", countOf(1, 7), "6", "transport retries"}, func(c *verbs.Config, v value) { c.Retry = v.n }},
}

// tosOf is the octet of IPv4 and IPv6 that tells networks how to treat a packet (RFC 2474).
var tosOf = countOf(0, 255)

// PathMTUs are those of InfiniBand.
var PathMTUs = []string{"256", "512", "1024", "2048", "4096"}

var mtuOf = kind{shown: "BYTES", words: PathMTUs, parse: func(s string) (value, error) {
	n, err := strconv.Atoi(s)
	if err != nil || n < 256 || n > 4096 || n&(n-1) != 0 {
		return value{}, errors.New("want 256, 512, 1024, 2048 or 4096")
	}
	return value{n: n}, nil
}}

func openVerbs(_ *Set, l Layer) (rdma.Device, error) {
	c, err := verbsConfig(l)
	if err != nil {
		return nil, err
	}
	return verbs.Open(c)
}

func verbsConfig(l Layer) (verbs.Config, error) {
	c := verbs.Default()
	c.Device = l.Device
	if err := verbsParams.Read(l, &c); err != nil {
		return c, err
	}
	if c.CM && (c.GIDIndex >= 0 || c.MTU != 0 || c.SL != 0) {
		return c, cli.Usage("", errors.New("rdma_cm chooses gid, mtu and sl by the address"), "cm without gid, mtu and sl")
	}
	return c, nil
}

// VerbsFlags are perftest's flags for kernel verbs, for layers of --transport that do not say otherwise themselves.
type VerbsFlags struct {
	device string
	port   int
	gid    int
	cm     bool
	// 0: not given.
	mtu, timeout, retry, sl, tos int
	connection                   string
}

func (v *VerbsFlags) Register(f *pflag.FlagSet) {
	v.RegisterLocal(f)
	f.BoolVarP(&v.cm, "rdma_cm", "R", false, "connect verbs by rdma_cm (always so for iWARP)")
}

// RegisterLocal leaves out what both sides must agree on.
func (v *VerbsFlags) RegisterLocal(f *pflag.FlagSet) {
	f.StringVarP(&v.device, "ib-dev", "d", "", "RDMA `device` (default the first with an ACTIVE port)")
	cli.RangedP(f, &v.port, "ib-port", "i", 0, 1, 255, "port of the device (default the first ACTIVE one)")
	cli.RangedP(f, &v.gid, "gid-index", "x", -1, 0, 255,
		"GID index of the port\ndefault by the peer's address, RoCE v2 first; rdma_cm chooses by the address")
}

// RegisterConnection are perftest's of a connection, which both sides get with the stack.
func (v *VerbsFlags) RegisterConnection(f *pflag.FlagSet) {
	f.IntVarP(&v.mtu, "mtu", "m", 0, "path MTU of kernel verbs: 256, 512, 1024, 2048 or 4096 (default the port's)")
	cli.RangedP(f, &v.timeout, "qp-timeout", "u", 0, 1, 31,
		"local ACK timeout of kernel verbs, 4.096 us * 2^N (default 14)")
	cli.Ranged(f, &v.retry, "retry_count", 0, 1, 7, "retries of a lost packet by kernel verbs, 1 to 7 (default 6)")
	cli.RangedP(f, &v.sl, "sl", "S", 0, 0, 15, "service level of kernel verbs, 0 to 15; rdma_cm chooses by the address")
	cli.RangedP(f, &v.tos, "tos", "T", 0, 0, 255,
		"type of service of packets, 0 to 255: the traffic class of kernel verbs, that of rdma_cm, IP_TOS of tcp and "+
			"iwarp")
	f.StringVarP(&v.connection, "connection", "c", Reliable, "accepted as in perftest: RC, the only kind of connection")
}

// Reliable is perftest's word for what all stacks here are.
const Reliable = "RC"

// Named tells whether a flag asks for a certain device, so that a missing --transport means verbs.
func (v *VerbsFlags) Named() bool { return v.device != "" || v.port != 0 || v.gid >= 0 }

// Check finds values that no device has, but for numbers, which are checked where they are read.
func (v *VerbsFlags) Check() error {
	switch {
	case strings.ContainsAny(v.device, "()+:, /"):
		return fmt.Errorf("--ib-dev %q: a bad device name", v.device)
	case v.connection != "" && v.connection != Reliable:
		return fmt.Errorf("--connection %q: reliable connections, RC, are the only ones", v.connection)
	}
	if _, err := mtuOf.parse(strconv.Itoa(v.mtu)); v.mtu != 0 && err != nil {
		return fmt.Errorf("--mtu %d: %w", v.mtu, err)
	}
	return nil
}

func (v *VerbsFlags) params() []flagParam {
	return []flagParam{
		{v.port != 0, "port", v.port, "-i", verbsOnly},
		{v.gid >= 0, "gid", v.gid, "-x", verbsOnly},
		{v.mtu != 0, "mtu", v.mtu, "-m", verbsOnly},
		{v.timeout != 0, "timeout", v.timeout, "-u", verbsOnly},
		{v.retry != 0, "retry", v.retry, "--retry_count", verbsOnly},
		{v.sl != 0, "sl", v.sl, "-S", verbsOnly},
		{v.tos != 0, "tos", v.tos, "-T", func(l Layer) bool {
			return slices.ContainsFunc(EntryOf(l).params.docs(), func(d paramDoc) bool { return d.name == "tos" })
		}},
	}
}

func verbsOnly(l Layer) bool { return l.Name == Verbs }

type flagParam struct {
	given  bool
	param  string
	value  int
	letter string
	fits   func(l Layer) bool
}

// Apply puts the flags into the layers that they are for. A flag that no layer takes is a mistake, but for -R.
func (v *VerbsFlags) Apply(stacks []string) ([]string, error) {
	if err := v.Check(); err != nil {
		return nil, cli.Usage("read command line", err, "rdmaperf run --help all")
	}
	out := make([]string, len(stacks))
	device, flags := false, v.params()
	fit, taken := make([]bool, len(flags)), make([]bool, len(flags))
	verbs := false
	for i, spec := range stacks {
		out[i] = spec
		layers, err := Parse(spec)
		if err != nil {
			return nil, cli.Usage("read --transport", err, "a comma list of "+Names())
		}
		l := &layers[len(layers)-1]
		changed := false
		if l.Name == Verbs {
			verbs = true
			if v.device != "" && l.Device == "" {
				l.Device, device, changed = v.device, true, true
			}
			if _, cm := l.Param("cm"); v.cm && !cm {
				*l, changed = l.With("cm"), true
			}
		}
		_, cm := l.Param("cm")
		for k, f := range flags {
			if !f.given || !f.fits(*l) {
				continue
			}
			fit[k] = true
			if _, own := l.Param(f.param); own {
				continue
			}
			taken[k] = true
			if f.param == "gid" && cm { // -x beside -R is perftest's habit: there the address decides
				continue
			}
			*l, changed = l.With(f.param+"="+strconv.Itoa(f.value)), true
		}
		if changed {
			out[i] = Format(layers)
		}
	}
	all := strings.Join(stacks, ",")
	refuse := func(text string, fits bool) error {
		if fits {
			return cli.Usage("read command line", fmt.Errorf("%s: --transport %s says otherwise", text, all),
				"one of the two")
		}
		return cli.Usage("read command line", fmt.Errorf("%s is for kernel verbs, and --transport %s has none", text,
			all), "--transport verbs, or without it")
	}
	if v.device != "" && !device {
		return nil, refuse("-d "+v.device, verbs)
	}
	for k, f := range flags {
		if text := f.letter + " " + strconv.Itoa(f.value); f.given && !taken[k] {
			if f.letter == "-T" && !fit[k] {
				return nil, cli.Usage("read command line", fmt.Errorf("%s: nothing of --transport %s marks packets",
					text, all), "verbs, tcp or iwarp, or without it")
			}
			return nil, refuse(text, fit[k])
		}
	}
	return out, nil
}

// Verbs is the provider that these flags are for.
const Verbs = "verbs"

// Here is a client's stack as this server opens it: its own flags win over the device that the client names, which is a
// wish of another machine.
func (v *VerbsFlags) Here(spec string, wish bool) (string, error) {
	layers, l := bottom(spec)
	if l.Name != Verbs {
		return spec, nil // also what is no stack: opening it says so
	}
	_, cm := l.Param("cm")
	remote := wish
	if v.device != "" {
		l.Device, wish = v.device, false
	}
	if v.port != 0 {
		*l = l.without("port").With("port=" + strconv.Itoa(v.port))
	}
	if v.gid >= 0 && !cm {
		*l = l.without("gid").With("gid=" + strconv.Itoa(v.gid))
	}
	own := *l
	spec, err := ChooseDevice(Format(layers), wish)
	if chosen, e := Parse(spec); err == nil && e == nil && remote && !cm {
		if _, now := chosen[len(chosen)-1].Param("cm"); now {
			return "", OpenError(spec, chosen, own, mixed("this server's device "+v.device+" is iWARP"))
		}
	}
	return spec, err
}

// TryHere opens the device that the flags of a server name, and closes it, so that a mistake shows at once.
func (v *VerbsFlags) TryHere() error {
	if !v.Named() {
		return nil
	}
	spec, err := v.Here(Verbs, false)
	if err != nil {
		return err
	}
	tr, err := new(Set).Open(spec)
	if err != nil {
		return err
	}
	return tr.Close()
}
