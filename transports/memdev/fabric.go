package memdev

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// Config shapes a fabric. The zero value is fault-free and runs on the system's clock.
type Config struct {
	// Seed feeds every choice of the fault plan. Keys come from the system: they must not be guessable.
	Seed uint64
	// Faults are armed from the start; see Fabric.Arm.
	Faults map[Fault]Trigger
	// ReadDelay passes between the arrival of a read or atomic and the placement of its answer. Only with it can reads
	// be outstanding, so that fences and the ORD limit have something to hold. 0 answers at once.
	ReadDelay time.Duration
	// RNRTimer passes between two tries of a send without a receive (IBTA 9.7.5.2.8). 0: 640 µs, code 12 there.
	RNRTimer time.Duration
	// OnDemand declares on-demand paging. Without it registrations that ask for it are refused.
	OnDemand bool
	// Now is the clock of the two timers, read while one runs; it must not go back. nil: time.Now.
	Now func() time.Time
}

const defaultRNRTimer = 640 * time.Microsecond

// maxTick bounds a blocked call's sleep while a timer runs: an injected clock may advance without a sign.
const maxTick = time.Millisecond

// Fabric connects devices of one process. Safe for concurrent use.
type Fabric struct {
	cfg   Config
	start time.Time

	mu        sync.Mutex
	faults    plan
	devices   map[string]*Device
	listeners map[string]*listener
	lastQP    uint32
	lastPort  int
	timed     []*qp         // QPs with a running timer, oldest first
	late      []*qp         // QPs whose flush a fault withholds
	doomed    []*qp         // QPs that lost a completion; they fail at unlock
	waiters   int           // calls blocked in await
	kick      chan struct{} // closed when the first timer starts while somebody waits

	// attention counts timed and late QPs: what an empty Poll must look at.
	attention atomic.Int32
}

// NewFabric makes an empty fabric.
func NewFabric(cfg Config) *Fabric {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.RNRTimer <= 0 {
		cfg.RNRTimer = defaultRNRTimer
	}
	return &Fabric{
		cfg:       cfg,
		start:     cfg.Now(),
		faults:    newPlan(cfg.Seed, cfg.Faults),
		devices:   map[string]*Device{},
		listeners: map[string]*listener{},
		kick:      make(chan struct{}),
	}
}

// String names the seed and the armed faults, to be printed with every failure.
func (f *Fabric) String() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return "mem(" + f.faults.String() + ")"
}

// Open makes a device. The name is its host part in addresses; "" picks one.
// Fails with ErrAddrInUse while another open device has the name.
func (f *Fabric) Open(name string) (*Device, error) {
	f.lock()
	defer f.unlock()
	for i := len(f.devices); name == ""; i++ {
		if n := fmt.Sprintf("mem%d", i); f.devices[n] == nil {
			name = n
		}
	}
	if f.devices[name] != nil {
		return nil, &rdma.OpError{Op: "open", Object: name, Err: rdma.ErrAddrInUse}
	}
	d := &Device{fab: f, host: name, name: deviceName(f.cfg), pds: map[rdma.PD]int{0: 0}, lkeys: map[uint32]*mr{},
		rkeys: map[uint32]*mr{}, stale: map[uint32]*mr{}}
	f.devices[name] = d
	return d, nil
}

func (f *Fabric) lock() { f.mu.Lock() }

// unlock first fails the QPs whose CQ overran, which cannot happen inside the operation that noticed.
func (f *Fabric) unlock() {
	for len(f.doomed) > 0 {
		q := f.doomed[0]
		f.doomed = f.doomed[1:]
		if q.state != rdma.QPErr {
			q.dev.raise(rdma.EventQPFatal, q.num)
			q.enterErr()
		}
	}
	f.mu.Unlock()
}

func (f *Fabric) clock() time.Duration { return f.cfg.Now().Sub(f.start) }

// drive does the timed work that is due, in every call that can block or poll.
func (f *Fabric) drive() {
	for len(f.timed) > 0 {
		now := f.clock()
		i := slices.IndexFunc(f.timed, func(q *qp) bool { return q.due() <= now })
		if i < 0 {
			break
		}
		f.timed[i].tick(now)
	}
	for i := 0; i < len(f.late); {
		if q := f.late[i]; q.closed {
			f.late = append(f.late[:i], f.late[i+1:]...)
			f.attention.Add(-1)
			q.flushNow()
			continue
		}
		i++
	}
}

// await blocks, with the lock held on return, until ready holds, which wins, or ctx ends. wake has a token then.
func (f *Fabric) await(ctx context.Context, wake <-chan struct{}, ready func() bool) error {
	f.waiters++
	defer func() { f.waiters-- }()
	for {
		f.drive()
		if ready() {
			return nil
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		kick := f.kick
		var tick <-chan time.Time
		var timer *time.Timer
		if len(f.timed) > 0 {
			timer = time.NewTimer(f.untilDue())
			tick = timer.C
		}
		f.unlock()
		select {
		case <-wake:
		case <-kick:
		case <-tick:
		case <-ctx.Done():
		}
		if timer != nil {
			timer.Stop()
		}
		f.lock()
	}
}

func (f *Fabric) untilDue() time.Duration {
	now, next := f.clock(), maxTick
	for _, q := range f.timed {
		next = min(next, q.due()-now)
	}
	return max(next, time.Microsecond)
}

func signal(wake chan struct{}) {
	select {
	case wake <- struct{}{}:
	default:
	}
}
