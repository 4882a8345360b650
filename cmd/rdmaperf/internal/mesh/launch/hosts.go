package launch

import (
	"bufio"
	"fmt"
	"hash/fnv"
	"io"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
)

// Host is a line of a file of ranks. Switch is what the host hangs on, outermost first, or "".
type Host struct{ Name, Switch string }

// ReadHosts reads a file of ranks, each HOST or HOST SWITCH; what follows a # is a comment.
func ReadHosts(r io.Reader) (hosts []Host, err error) {
	lines := bufio.NewScanner(r)
	for n := 1; lines.Scan(); n++ {
		text, _, _ := strings.Cut(lines.Text(), "#")
		words := strings.Fields(text)
		switch len(words) {
		case 0:
		case 1:
			hosts = append(hosts, Host{Name: words[0]})
		case 2:
			hosts = append(hosts, Host{words[0], words[1]})
		default:
			return nil, fmt.Errorf("line %d: want HOST or HOST SWITCH", n)
		}
	}
	if err = lines.Err(); err == nil && len(hosts) < 2 {
		err = fmt.Errorf("%d hosts: want two or more, one a line", len(hosts))
	}
	return hosts, err
}

func fromHosts(f *Flags) (*Place, error) {
	p := &Place{Launcher: "--ranks", Rank: f.Rank, Size: len(f.Hosts), Rendezvous: []string{f.Hosts[0].Name}}
	h := fnv.New64a()
	for i, host := range f.Hosts {
		fmt.Fprintln(h, host.Name) // never fails (hash.Hash)
		switch {
		case f.Rank >= 0 || !f.Own(host.Name):
		case p.Rank >= 0:
			return nil, fmt.Errorf("--ranks: %s and %s are both this host: give --rank", f.Hosts[p.Rank].Name, host.Name)
		default:
			p.Rank = i
		}
	}
	if p.Rank < 0 {
		return nil, fmt.Errorf("--ranks: none of the %d hosts is this one: give --rank", len(f.Hosts))
	}
	if p.Rank < len(f.Hosts) {
		p.Node, p.Switch = f.Hosts[p.Rank].Name, f.Hosts[p.Rank].Switch
	}
	p.Job = fmt.Sprintf("%x", h.Sum64())
	return p, nil
}

// IsThisHost tells whether a name or an address is of this host.
func IsThisHost(host string) bool {
	if own, err := os.Hostname(); err == nil {
		short, _, _ := strings.Cut(own, ".")
		if host == own || host == short {
			return true
		}
	}
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		return false
	}
	found, err := net.LookupIP(host)
	return err == nil && slices.ContainsFunc(found, func(ip net.IP) bool {
		return slices.ContainsFunc(addrs, func(a net.Addr) bool {
			n, ok := a.(*net.IPNet)
			return ok && n.IP.Equal(ip) && !ip.IsLoopback()
		})
	})
}

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
