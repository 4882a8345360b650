package bpev

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"
)

// Mode is how a Set waits.
type Mode uint8

const (
	// BPEV polls for Config.BusyTime, then sleeps until a background poller finds work.
	BPEV Mode = iota
	// BP polls and never sleeps: lowest latency, one processor a waiting caller.
	BP
	// Event sleeps at once: no processor time while nothing happens.
	Event
	numModes
)

var modeNames = [numModes]string{"bpev", "bp", "event"}

// String is the name used on the command line and in results.
func (m Mode) String() string {
	if m < numModes {
		return modeNames[m]
	}
	return "mode?"
}

// UnmarshalText reads a name; ErrConfig for any other text.
func (m *Mode) UnmarshalText(text []byte) error {
	i := slices.Index(modeNames[:], string(text))
	if i < 0 {
		return fmt.Errorf("polling mode %q, want bp, event or bpev: %w", text, ErrConfig)
	}
	*m = Mode(i)
	return nil
}

// ErrConfig: a configuration value outside its range.
var ErrConfig = errors.New("invalid polling configuration")

const (
	// DefaultBusyTime covers the round trip of a call over a software provider, and
	// what the peer works on a message of a megabyte: who polls pays no wake-up for
	// that. RR-Compound's default is 500 µs, and the knee of its sweep is at one round
	// trip; where connections outnumber processors longer polling costs throughput.
	DefaultBusyTime = 200 * time.Microsecond
	// DefaultIdleSleep is the shortest pause that Go's timers keep.
	DefaultIdleSleep = time.Millisecond
	// MaxPollers bounds Config.Pollers. Arbitrary: the published sweep ends at 8.
	MaxPollers = 64
)

// Config chooses how a Set waits. The zero value is bpev with its defaults.
type Config struct {
	Mode Mode
	// BusyTime is how long a caller polls before it sleeps, in bpev, unless little arrives and its last waits were
	// longer. 0 means DefaultBusyTime; a negative one means that the caller sleeps at once.
	BusyTime time.Duration
	// Pollers is the number of background pollers in bpev; 0 means 1.
	Pollers int
	// IdleSleep is a background poller's pause between two scans of connections without events, once they have
	// found nothing for a while. 0 means DefaultIdleSleep; a negative one means no
	// pause: each poller then takes a processor for as long as somebody sleeps, also where there are events.
	IdleSleep time.Duration
	// MostPolled is how many active connections a poller pays for, in bpev: callers on more wait for events. 0 is no
	// bound, for devices that are polled without a system call.
	MostPolled int
}

// Normal fills in the defaults; ErrConfig for values out of range.
func (c Config) Normal() (Config, error) {
	if c.Mode >= numModes {
		return c, fmt.Errorf("polling mode %d: %w", c.Mode, ErrConfig)
	}
	if c.Pollers < 0 || c.Pollers > MaxPollers {
		return c, fmt.Errorf("%d pollers, want 0 to %d: %w", c.Pollers, MaxPollers, ErrConfig)
	}
	if c.MostPolled < 0 || c.MostPolled > 1<<20 {
		return c, fmt.Errorf("%d connections polled, want 0 to %d: %w", c.MostPolled, 1<<20, ErrConfig)
	}
	c.BusyTime = cmp.Or(c.BusyTime, DefaultBusyTime)
	c.IdleSleep = cmp.Or(c.IdleSleep, DefaultIdleSleep)
	c.Pollers = cmp.Or(c.Pollers, 1)
	return c, nil
}
