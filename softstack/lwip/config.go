package lwip

import (
	"errors"
	"fmt"
	"math/bits"
	"strconv"
	"strings"
	"time"
)

// ErrAbsent: this program or this machine has no lwIP. The error that wraps it says what to install and how to build.
var ErrAbsent = errors.New("lwip is not here")

// ErrUnlike: the library at hand has other options than the one whose headers the program was built with.
var ErrUnlike = errors.New("this program is built for another lwIP")

// ErrCopies: the library at hand copies whatever it sends. The error that wraps it says how to get one that does not.
var ErrCopies = errors.New("this lwIP copies what it sends")

// ErrRights: the process may not have an interface. The error that wraps it says what it lacks.
var ErrRights = errors.New("no right to an interface")

// Limits of a ring in frames, each way. A frame takes 2 KiB.
const (
	MinRing     = 16
	MaxRing     = 16384
	DefaultRing = 1024
)

// Links.
const (
	LinkSHM = "shm"
	LinkXDP = "xdp"
)

// Threading models (SoftRDMA, APNet'17).
const (
	C1 = "c1" // application | packets and stack
	C2 = "c2" // all in one
	C3 = "c3" // packets, stack and placement | application and sending
)

// Config is how a stack's links behave. The zero value is the default.
type Config struct {
	// Ring is the number of frames that a direction of a link holds, a power of two. The side that dials chooses.
	Ring int
	// TwoCopies copies a packet out of the ring before the stack sees it, not when its payload is placed.
	TwoCopies bool
	// ByReference reads a sender's memory until the peer has acknowledged it; the library is built for that.
	ByReference bool
	// Link is LinkSHM, the default, or LinkXDP, through Iface or the interface with the address at hand.
	Link, Iface string
	// Sequential gives each packet to lwIP's own thread, and senders take the lock of lwIP's core.
	Sequential bool
	// Threads is SoftRDMA's division of work: c1, a packet thread beside the application; c2, the default, all in the
	// thread that polls; c3, which is the provider's: here it is c2.
	Threads string
	// Impairment of what this side sends, as probabilities below 1, from Seed.
	Loss, Duplicate, Reorder float64
	// Delay is how long what arrives waits; Jitter is added to it, evenly from 0 and from Seed. Order stays.
	Delay, Jitter time.Duration
	Seed          uint64
}

func (c *Config) validate() error {
	if c.Ring == 0 {
		c.Ring = DefaultRing
	}
	if c.Ring < MinRing || c.Ring > MaxRing || bits.OnesCount(uint(c.Ring)) != 1 {
		return fmt.Errorf("ring of %d frames: a power of two from %d to %d is wanted", c.Ring, MinRing, MaxRing)
	}
	switch {
	case c.Threads != "" && c.Threads != C1 && c.Threads != C2 && c.Threads != C3:
		return fmt.Errorf("threads %q: c1, c2 or c3 is wanted", c.Threads)
	case c.ByReference && c.TwoCopies:
		return errors.New("copies: either two of what arrives, or none of what leaves")
	case c.ByReference && c.Threads == C1:
		return errors.New("copies=zero: with threads=c1 what is sent is copied for the packet thread; " +
			"c2 and c3 need not")
	case c.Sequential && c.Threads != "":
		return fmt.Errorf("threads=%s: the sequential stack has threads of its own", c.Threads)
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

// Params are what departs from the default, as in a stack's name.
func (c *Config) Params() string {
	p := []string{"link=shm"}
	if c.Link == LinkXDP {
		p[0] = "link=xdp"
		if c.Iface != "" {
			p[0] += ":" + c.Iface
		}
	}
	if c.Threads == C1 {
		p = append(p, "threads=c1")
	}
	if c.TwoCopies {
		p = append(p, "copies=two")
	}
	if c.ByReference {
		p = append(p, "copies=zero")
	}
	if c.Ring != 0 && c.Ring != DefaultRing {
		p = append(p, "ring="+strconv.Itoa(c.Ring))
	}
	for _, f := range []struct {
		name string
		v    float64
	}{{"loss", c.Loss}, {"dup", c.Duplicate}, {"reorder", c.Reorder}} {
		if f.v != 0 {
			p = append(p, f.name+"="+strconv.FormatFloat(f.v, 'g', -1, 64))
		}
	}
	for _, d := range []struct {
		name string
		v    time.Duration
	}{{"delay", c.Delay}, {"jitter", c.Jitter}} {
		if d.v != 0 {
			p = append(p, d.name+"="+strings.ReplaceAll(d.v.String(), "µ", "u"))
		}
	}
	if c.Seed != 0 {
		p = append(p, "seed="+strconv.FormatUint(c.Seed, 10))
	}
	return strings.Join(p, ",")
}

// Counts are what the links of a stack moved, lost and copied since it was opened.
type Counts struct {
	TxFrames, TxOctets uint64
	TxDropped          uint64 // the peer's ring was full
	RxFrames, RxOctets uint64
	RxCopied           uint64 // octets copied out of a ring before the stack saw them
	RxMissed           uint64 // frames that peers dropped because our ring was full
	Lost, Duplicated   uint64 // by the impairment
	Reordered, Delayed uint64
	Bells              uint64 // system calls to wake a peer that slept
	Refused            uint64 // packets that the mailbox of a sequential stack had no room for

	// Of the process, whatever the stack.
	TxCopied     uint64 // octets that lwIP copied to send them
	TxReferenced uint64 // octets that it read where they were instead
	Thread       uint64 // nanoseconds of CPU of the packet thread (C1)
	Yields       uint64 // system calls in which threads of a stack waited for each other, or offered their CPU
}

// ErrParam marks a parameter whose value is not understood.
var ErrParam = errors.New("invalid parameter")

// Set takes a parameter of a stack's name, "key=value".
func (c *Config) Set(key, value string) (err error) {
	switch key {
	case "link":
		c.Link, c.Iface, _ = strings.Cut(value, ":")
		if c.Link != LinkSHM && c.Link != LinkXDP || c.Link == LinkSHM && c.Iface != "" {
			err = errors.New("want shm, xdp or xdp:IFACE")
		}
	case "copies":
		switch value {
		case "one", "two", "zero":
			c.TwoCopies, c.ByReference = value == "two", value == "zero"
		default:
			err = errors.New("one or two of what arrives, or zero of what leaves")
		}
	case "threads":
		c.Threads = value
	case "ring":
		c.Ring, err = strconv.Atoi(value)
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
		err = errors.New("no such parameter")
	}
	if err == nil {
		check := *c
		err = check.validate()
	}
	if err != nil {
		return fmt.Errorf("%w %s=%s: %w", ErrParam, key, value, err)
	}
	return nil
}
