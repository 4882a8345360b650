package launch

import (
	"fmt"
	"strconv"
	"strings"
)

// maxHosts bounds a list as Slurm does (MAX_RANGE in src/common/hostlist.h).
const maxHosts = 64 << 10

// HostList expands a list of hosts as Slurm writes it: "n[001-010,015],gpu3,r[0-1]s[1-2]".
func HostList(list string) ([]string, error) {
	var hosts []string
	for _, name := range splitOutside(list) {
		some, err := expand(name)
		if err != nil {
			return nil, fmt.Errorf("list of hosts %q: %w", list, err)
		}
		if hosts = append(hosts, some...); len(hosts) > maxHosts {
			return nil, fmt.Errorf("list of hosts of more than %d", maxHosts)
		}
	}
	return hosts, nil
}

func splitOutside(list string) (parts []string) {
	depth, from := 0, 0
	for i, c := range list + "," {
		switch {
		case c == '[':
			depth++
		case c == ']':
			depth--
		case c == ',' && depth == 0:
			if i > from {
				parts = append(parts, strings.TrimSpace(list[from:i]))
			}
			from = i + 1
		}
	}
	if depth != 0 {
		parts = append(parts, list[from:])
	}
	return parts
}

func expand(name string) ([]string, error) {
	open := strings.IndexByte(name, '[')
	if open < 0 {
		return []string{name}, nil
	}
	end := strings.IndexByte(name, ']')
	if end < open {
		return nil, fmt.Errorf("%q: a bracket is open", name)
	}
	rest, err := expand(name[end+1:])
	if err != nil {
		return nil, err
	}
	var all []string
	for _, r := range strings.Split(name[open+1:end], ",") {
		lo, hi, span := strings.Cut(r, "-")
		if !span {
			hi = lo
		}
		from, e1 := strconv.Atoi(lo)
		to, e2 := strconv.Atoi(hi)
		if e1 != nil || e2 != nil || from < 0 || to < from || (to-from+1)*len(rest)+len(all) > maxHosts {
			return nil, fmt.Errorf("%q: no range %q", name, r)
		}
		for n := from; n <= to; n++ {
			for _, tail := range rest {
				all = append(all, fmt.Sprintf("%s%0*d%s", name[:open], len(lo), n, tail))
			}
		}
	}
	return all, nil
}
