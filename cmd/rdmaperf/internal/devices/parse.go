package devices

import (
	"cmp"
	"net/netip"
	"strings"
)

func afterNumber(s string) string {
	if _, word, found := strings.Cut(s, ":"); found {
		return strings.TrimSpace(word)
	}
	return s
}

// parseGID shortens a GID as an IPv6 address; ok is false for an empty entry.
func parseGID(s string) (gid string, ok bool) {
	a, err := netip.ParseAddr(s)
	if err != nil || a.IsUnspecified() {
		return "", false
	}
	return a.String(), true
}

// gidType corrects the kernel's word, which is the same for InfiniBand, RoCE v1 and iWARP (ib_gid_type in ib_verbs.h).
func gidType(raw, nodeType, linkLayer string) string {
	switch {
	case nodeType == "RNIC":
		return "iWARP"
	case raw != "IB/RoCE v1":
		return raw
	case linkLayer == "InfiniBand":
		return "IB"
	default:
		return "RoCE v1"
	}
}

// compareNames orders names with their numbers by value: mlx5_2 before mlx5_10.
func compareNames(a, b string) int {
	for a != "" && b != "" {
		na, nb := leadingDigits(a), leadingDigits(b)
		if na == 0 || nb == 0 {
			if a[0] != b[0] {
				return cmp.Compare(a[0], b[0])
			}
			a, b = a[1:], b[1:]
			continue
		}
		x, y := strings.TrimLeft(a[:na], "0"), strings.TrimLeft(b[:nb], "0")
		if c := cmp.Or(cmp.Compare(len(x), len(y)), cmp.Compare(x, y), cmp.Compare(na, nb)); c != 0 {
			return c
		}
		a, b = a[na:], b[nb:]
	}
	return cmp.Compare(len(a), len(b))
}

func leadingDigits(s string) int {
	n := 0
	for n < len(s) && s[n] >= '0' && s[n] <= '9' {
		n++
	}
	return n
}
