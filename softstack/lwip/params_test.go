package lwip

import (
	"errors"
	"testing"
)

func TestParametersSayWhatDepartsFromTheDefault(t *testing.T) {
	var c Config
	for _, p := range [][2]string{{"link", "shm"}, {"copies", "two"}, {"ring", "256"}, {"loss", "0.01"}, {"dup", "0.5"},
		{"reorder", "0.25"}, {"delay", "50us"}, {"jitter", "1ms"}, {"seed", "9"}} {
		if err := c.Set(p[0], p[1]); err != nil {
			t.Errorf("%s=%s: %v", p[0], p[1], err)
		}
	}
	if got, want := c.Params(),
		"link=shm,copies=two,ring=256,loss=0.01,dup=0.5,reorder=0.25,delay=50us,jitter=1ms,seed=9"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if got := (&Config{}).Params(); got != "link=shm" {
		t.Errorf("the default is called %s", got)
	}
}

func TestBadParametersAreRefused(t *testing.T) {
	for _, p := range [][2]string{{"link", "wire"}, {"copies", "3"}, {"ring", "63"}, {"ring", "x"}, {"ring", "32768"},
		{"ring", "100"},
		{"loss", "1"}, {"loss", "-0.1"}, {"loss", "NaN"}, {"dup", "2"}, {"reorder", ""}, {"delay", "5"},
		{"delay", "-1us"}, {"jitter", "2s"}, {"seed", "-1"}, {"crc", ""}} {
		var c Config
		if err := c.Set(p[0], p[1]); !errors.Is(err, ErrParam) {
			t.Errorf("%s=%s: %v", p[0], p[1], err)
		}
	}
}
