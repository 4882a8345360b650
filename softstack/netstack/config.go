package netstack

import (
	"errors"
	"fmt"
	"math/bits"
	"strconv"
	"strings"
	"time"
)

// ErrAbsent: this program was built without netstack. The error that wraps it says how
// to build it.
var ErrAbsent = errors.New("netstack is not here")

// ErrParam marks a parameter whose value is not understood.
var ErrParam = errors.New("invalid parameter")

// Limits of a link.
const (
	MinRing     = 16 // frames, each way
	MaxRing     = 16384
	DefaultRing = 1024
	MinMTU      = 576 // octets of a packet (RFC 791 §3.2)
	MaxMTU      = 65535
	DefaultMTU  = 1500
)

// Config is how a stack's links behave. The zero value is the default.
type Config struct {
	// Ring is the number of frames that a direction of a link holds, a power of two, and
	// MTU the octets of a packet. The side that dials chooses.
	Ring, MTU int
	// Impairment of what this side sends, as probabilities below 1, from Seed.
	Loss, Duplicate, Reorder float64
	// Delay is how long what arrives at this side waits, and Jitter is added to it, evenly
	// from 0. Order stays.
	Delay, Jitter time.Duration
	Seed          uint64
}

func (c *Config) validate() error {
	if c.Ring == 0 {
		c.Ring = DefaultRing
	}
	if c.MTU == 0 {
		c.MTU = DefaultMTU
	}
	if c.Ring < MinRing || c.Ring > MaxRing || bits.OnesCount(uint(c.Ring)) != 1 {
		return fmt.Errorf("ring of %d frames: a power of two from %d to %d is wanted", c.Ring, MinRing, MaxRing)
	}
	if c.MTU < MinMTU || c.MTU > MaxMTU {
		return fmt.Errorf("MTU of %d octets: %d to %d is wanted", c.MTU, MinMTU, MaxMTU)
	}
	for _, p := range []float64{c.Loss, c.Duplicate, c.Reorder} {
		if !(p >= 0 && p < 1) {
			return fmt.Errorf("probability %v: 0 or more and less than 1 is wanted", p)
		}
	}
	for _, d := range []time.Duration{c.Delay, c.Jitter} {
		if d < 0 || d > time.Second {
			return fmt.Errorf("delay of %v: 0 to 1s is wanted", d)
		}
	}
	return nil
}

// Set takes a parameter of a stack's name, "key=value". known is false for a key that
// is not one of this package.
func (c *Config) Set(key, value string) (known bool, err error) {
	switch key {
	case "link":
		if value != "shm" {
			err = errors.New("netstack has link=shm only; stack=raw has others")
		}
	case "copies":
		if value != "two" {
			err = errors.New("netstack copies out of the ring, and once more to the receiver: two")
		}
	case "ring":
		c.Ring, err = strconv.Atoi(value)
	case "mtu":
		c.MTU, err = strconv.Atoi(value)
	case "loss":
		c.Loss, err = strconv.ParseFloat(value, 64)
	case "dup":
		c.Duplicate, err = strconv.ParseFloat(value, 64)
	case "reorder":
		c.Reorder, err = strconv.ParseFloat(value, 64)
	case "delay":
		c.Delay, err = time.ParseDuration(value)
	case "jitter":
		c.Jitter, err = time.ParseDuration(value)
	case "seed":
		c.Seed, err = strconv.ParseUint(value, 10, 64)
	default:
		return false, nil
	}
	if err == nil {
		check := *c
		err = check.validate()
	}
	if err != nil {
		return true, fmt.Errorf("%w %s=%s: %w", ErrParam, key, value, err)
	}
	return true, nil
}

// Params are what departs from the default, as in a stack's name.
func (c *Config) Params() string {
	p := []string{"link=shm"}
	add := func(on bool, name, value string) {
		if on {
			p = append(p, name+"="+value)
		}
	}
	span := func(d time.Duration) string { return strings.ReplaceAll(d.String(), "µ", "u") }
	float := func(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }
	add(c.Ring != 0 && c.Ring != DefaultRing, "ring", strconv.Itoa(c.Ring))
	add(c.MTU != 0 && c.MTU != DefaultMTU, "mtu", strconv.Itoa(c.MTU))
	add(c.Loss != 0, "loss", float(c.Loss))
	add(c.Duplicate != 0, "dup", float(c.Duplicate))
	add(c.Reorder != 0, "reorder", float(c.Reorder))
	add(c.Delay != 0, "delay", span(c.Delay))
	add(c.Jitter != 0, "jitter", span(c.Jitter))
	add(c.Seed != 0, "seed", strconv.FormatUint(c.Seed, 10))
	return strings.Join(p, ",")
}

// Counts are what the links of all stacks of the process moved and lost.
type Counts struct {
	TxFrames, TxOctets          uint64
	TxDropped                   uint64 // the peer's ring was full
	TxCopied                    uint64 // octets that netstack took out of the sender's memory
	RxFrames, RxOctets          uint64
	RxCopied                    uint64 // octets copied out of a ring before the stack saw them
	RxMissed                    uint64 // frames that peers dropped because our ring was full
	Lost, Duplicated, Reordered uint64 // by the impairment
	Delayed                     uint64
	Bells                       uint64 // system calls to wake a peer that slept
	Yields                      uint64 // system calls in which threads offered their CPU to netstack
}

func (c *Counts) add(n *Counts) {
	c.TxFrames += n.TxFrames
	c.TxOctets += n.TxOctets
	c.TxDropped += n.TxDropped
	c.RxFrames += n.RxFrames
	c.RxOctets += n.RxOctets
	c.RxMissed += n.RxMissed
	c.TxCopied += n.TxCopied
	c.RxCopied += n.RxCopied
	c.Lost += n.Lost
	c.Duplicated += n.Duplicated
	c.Reordered += n.Reordered
	c.Delayed += n.Delayed
	c.Bells += n.Bells
	c.Yields += n.Yields
}
