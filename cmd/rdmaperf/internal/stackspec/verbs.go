package stackspec

import (
	"errors"
	"strconv"

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

func connectByCM(l Layer) Layer { return l.without("cm").With("cm") }

// verbsAway is without ports and GID indices, which are this machine's; the device is a wish.
func verbsAway(l Layer) Layer { return l.without("port", "gid") }

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
