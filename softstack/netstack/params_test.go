package netstack

import (
	"errors"
	"strings"
	"testing"
)

func TestParametersAreReadAndShown(t *testing.T) {
	var c Config
	for _, p := range []string{"link=shm", "copies=two", "ring=64", "mtu=9000", "loss=0.01", "dup=0.02", "reorder=0.03", "delay=50us", "jitter=10us", "seed=7"} {
		key, value, _ := strings.Cut(p, "=")
		if known, err := c.Set(key, value); !known || err != nil {
			t.Errorf("%s: %v, %v", p, known, err)
		}
	}
	const want = "link=shm,ring=64,mtu=9000,loss=0.01,dup=0.02,reorder=0.03,delay=50us,jitter=10us,seed=7"
	if got := c.Params(); got != want {
		t.Errorf("%s, want %s", got, want)
	}
	for _, p := range []string{"link=xdp", "copies=one", "ring=63", "mtu=500", "mtu=65536", "loss=1", "loss=NaN", "delay=-1s", "jitter=2s", "seed=x"} {
		key, value, _ := strings.Cut(p, "=")
		var c Config
		if _, err := c.Set(key, value); !errors.Is(err, ErrParam) || !strings.Contains(err.Error(), p) {
			t.Errorf("%s: %v", p, err)
		}
	}
	if known, _ := c.Set("threads", "c1"); known {
		t.Error("threads are lwIP's")
	}
}
