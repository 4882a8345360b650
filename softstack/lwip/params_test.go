package lwip

import (
	"errors"
	"testing"
)

func TestParametersSayWhatDepartsFromTheDefault(t *testing.T) {
	var c Config
	for _, p := range [][2]string{{"link", "shm"}, {"copies", "two"}, {"ring", "256"}, {"loss", "0.01"}, {"dup", "0.5"}, {"reorder", "0.25"}, {"delay", "50us"}, {"jitter", "1ms"}, {"seed", "9"}} {
		if known, err := c.Set(p[0], p[1]); !known || err != nil {
			t.Errorf("%s=%s: %v, %v", p[0], p[1], known, err)
		}
	}
	if got, want := c.Params(), "link=shm,copies=two,ring=256,loss=0.01,dup=0.5,reorder=0.25,delay=50us,jitter=1ms,seed=9"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if got := (&Config{}).Params(); got != "link=shm" {
		t.Errorf("the default is called %s", got)
	}
}

func TestBadParametersAreRefused(t *testing.T) {
	for _, p := range [][2]string{{"link", "wire"}, {"copies", "3"}, {"ring", "63"}, {"ring", "x"}, {"ring", "32768"}, {"ring", "100"},
		{"loss", "1"}, {"loss", "-0.1"}, {"loss", "NaN"}, {"dup", "2"}, {"reorder", ""}, {"delay", "5"}, {"delay", "-1us"}, {"jitter", "2s"}, {"seed", "-1"}} {
		var c Config
		if known, err := c.Set(p[0], p[1]); !known || !errors.Is(err, ErrParam) {
			t.Errorf("%s=%s: %v, %v", p[0], p[1], known, err)
		}
	}
	var c Config
	if known, err := c.Set("crc", ""); known || err != nil {
		t.Errorf("a parameter of another: %v, %v", known, err)
	}
}
