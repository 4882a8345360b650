package verbs

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

const sysRoot = "/sys"

func noDevice() error {
	dir := filepath.Join(sysRoot, "class/infiniband")
	cause := "not run: this machine has no RDMA device"
	try := "a software one (modprobe rdma_rxe && rdma link add rxe0 type rxe netdev eth0), or --transport iwarp"
	entries, err := os.ReadDir(dir)
	switch {
	case len(entries) > 0:
		names := make([]string, len(entries))
		for i, e := range entries {
			names[i] = e.Name()
		}
		cause = fmt.Sprintf("not run: the kernel has %s, but libibverbs opens none", list(names))
		try = "apt install ibverbs-providers, or dnf install libibverbs"
		if nodes, _ := filepath.Glob("/dev/infiniband/uverbs*"); len(nodes) == 0 {
			cause = fmt.Sprintf("not run: the kernel has %s, but /dev/infiniband has no uverbs", list(names))
			try = "modprobe ib_uverbs, or in a container --device /dev/infiniband"
		}
	case err != nil:
		cause += " (no " + dir + ")"
	}
	return &rdma.AdviceError{Err: &kindError{rdma.ErrNoDevice, errors.New(cause)}, Try: try}
}
