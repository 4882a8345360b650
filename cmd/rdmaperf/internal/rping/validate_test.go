package rping

import (
	"context"
	"errors"
	"testing"

	"github.com/rdmaperf/rdmaperf/transports/memdev"
)

func TestValidationFindsOneWrongByte(t *testing.T) {
	overAll(t, func(t *testing.T, r rig) {
		badServer(t, r, func(e *endpoint, data registration) error {
			if err := answer(e, data, nil, true); err != nil {
				return err
			}
			if err := answer(e, data, func(b []byte) { b[999] ^= 0x40 }, true); err != nil {
				return err
			}
			return awaitEnd(e)
		})
		sum, err := Ping(context.Background(), r.active, ClientConfig{Addr: r.ln.Addr(), Size: 1000, Count: 5,
			Validate: true, Timeout: testTimeout})
		var bad *MismatchError
		if !errors.As(err, &bad) {
			t.Fatalf("Ping = %v, want a mismatch", err)
		}
		if want := (MismatchError{Ping: 1, Offset: 999, Got: 0x40, Want: 0, Wrong: 1, Size: 1000}); *bad != want {
			t.Errorf("mismatch = %+v, want %+v", *bad, want)
		}
		if sum.Pings != 1 {
			t.Errorf("%d pings were good, want 1", sum.Pings)
		}
	})
}

// Between ping 9 and ping 10 the pattern moves by a byte and meets itself, so a
// sink that nobody wrote would look almost right.
func TestValidationFindsAWriteThatNeverCame(t *testing.T) {
	r := providers[0].open(t)
	badServer(t, r, func(e *endpoint, data registration) error {
		for n := range 11 {
			if err := answer(e, data, nil, n < 10); err != nil {
				return err
			}
		}
		return awaitEnd(e)
	})
	_, err := Ping(context.Background(), r.active, ClientConfig{Addr: r.ln.Addr(), Count: 20, Validate: true,
		Timeout: testTimeout})
	var bad *MismatchError
	if !errors.As(err, &bad) || bad.Ping != 10 || bad.Wrong != DefaultSize-1 { // all but the last NUL
		t.Errorf("Ping = %v, want %d wrong bytes in ping 10", err, DefaultSize-1)
	}
}

func TestWithoutValidationNothingIsCompared(t *testing.T) {
	r := providers[0].open(t)
	badServer(t, r, func(e *endpoint, data registration) error {
		if err := answer(e, data, func(b []byte) { clear(b) }, true); err != nil {
			return err
		}
		return awaitEnd(e)
	})
	if _, err := Ping(context.Background(), r.active, ClientConfig{Addr: r.ln.Addr(), Count: 1,
		Timeout: testTimeout}); err != nil {
		t.Errorf("Ping = %v, want nil", err)
	}
}

// A fault of the provider, not of the peer, shows too: it spoils what the read
// of the second ping fetches. The six placements of the first ping and the
// second's advertisement pass.
func TestValidationFindsAFlippedByteOfTheDevice(t *testing.T) {
	r := memRig(t, memdev.Config{Seed: 1, Faults: map[memdev.Fault]memdev.Trigger{
		memdev.FaultFlipByte: {After: 7, Times: 1},
	}})
	serve(t, r, ServerConfig{})
	_, err := Ping(context.Background(), r.active, ClientConfig{Addr: r.ln.Addr(), Size: 5000, Count: 50,
		Validate: true, Timeout: testTimeout})
	var bad *MismatchError
	if !errors.As(err, &bad) || bad.Ping != 1 || bad.Wrong != 1 {
		t.Errorf("Ping = %v, want one wrong byte in ping 1", err)
	}
}
