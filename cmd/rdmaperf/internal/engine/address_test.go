package engine

import (
	"testing"
)

func TestElsewhereIsAnotherAddressOnly(t *testing.T) {
	for _, c := range []struct {
		host, addr string
		want       bool
	}{
		{"10.0.0.1", "10.0.0.1:7", false},
		{"10.0.0.1", "[::ffff:10.0.0.1]:7", false},
		{"fe80::1%eth0", "[fe80::1%eth0]:7", false},
		{"10.0.0.1", "0.0.0.0:7", false},
		{"10.0.0.1", "[::]:7", false},
		{"127.0.0.1", "end1:49152", false},
		{"127.0.0.1", "no port", false},
		{"127.0.0.1", "10.78.0.1:7", true},
		{"10.0.0.1", "[2001:db8::1]:7", true},
	} {
		if got := Elsewhere(c.host, c.addr); got != c.want {
			t.Errorf("elsewhere(%s, %s) = %v", c.host, c.addr, got)
		}
	}
}
