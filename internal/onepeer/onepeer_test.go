package onepeer

import (
	"errors"
	"strings"
	"testing"
)

func serve(b []byte, at int) (c byte, err error) {
	defer Recover(func(fault error) { err = fault })
	return b[at], nil
}

// A panic becomes the error of the one who is served, with its place, and what goes well is as it was.
func TestAPanicIsTheEndOfOnePeer(t *testing.T) {
	if c, err := serve([]byte("ab"), 1); c != 'b' || err != nil {
		t.Errorf("%q, %v", c, err)
	}
	_, err := serve([]byte("ab"), 2)
	var f *Fault
	if !errors.As(err, &f) || !strings.HasPrefix(f.Place, "onepeer_test.go:") ||
		!strings.Contains(f.Value, "index out of range") {
		t.Errorf("%v", err)
	}
}
